#include "proto/egress.h"

#include "proto/writer.h"

/* clang-format off */
static const struct field policy_fields[] = {
	FIELD(FIELD_STR, egress_policy, sandbox),
	FIELD(FIELD_U64, egress_policy, generation),
	FIELD(FIELD_U64, egress_policy, version),
	FIELD(FIELD_U32, egress_policy, address),
	FIELD(FIELD_U32, egress_policy, mode),
	FIELD(FIELD_U32, egress_policy, locked),
	FIELD(FIELD_U32, egress_policy, rules),
	FIELD(FIELD_U32, egress_policy, secrets),
	FIELD(FIELD_U64, egress_policy, max_connections),
	FIELD(FIELD_U64, egress_policy, max_requests),
	FIELD(FIELD_U64, egress_policy, max_bytes_out),
	FIELD(FIELD_U64, egress_policy, connections),
	FIELD(FIELD_U64, egress_policy, requests),
	FIELD(FIELD_U64, egress_policy, bytes_out),
	FIELD(FIELD_U64, egress_policy, bytes_in),
	FIELD(FIELD_STR, egress_policy, ca_seed),
	{ 0 }
};

static const struct field rule_fields[] = {
	FIELD(FIELD_STR, egress_rule, host),
	FIELD(FIELD_STR, egress_rule, ports),
	FIELD(FIELD_STR, egress_rule, methods),
	FIELD(FIELD_STR, egress_rule, paths),
	FIELD(FIELD_U32, egress_rule, bootstrap),
	{ 0 }
};

static const struct field secret_fields[] = {
	FIELD(FIELD_STR, egress_secret, name),
	FIELD(FIELD_STR, egress_secret, host),
	FIELD(FIELD_STR, egress_secret, methods),
	FIELD(FIELD_STR, egress_secret, paths),
	FIELD(FIELD_STR, egress_secret, header),
	FIELD(FIELD_STR, egress_secret, value),
	{ 0 }
};

static const struct field drop_fields[] = {
	FIELD(FIELD_STR, egress_drop, sandbox),
	FIELD(FIELD_U64, egress_drop, generation),
	{ 0 }
};

static const struct field confirm_fields[] = {
	FIELD(FIELD_STR, egress_confirm, sandbox),
	FIELD(FIELD_U64, egress_confirm, generation),
	FIELD(FIELD_U64, egress_confirm, version),
	FIELD(FIELD_STR, egress_confirm, why),
	{ 0 }
};

static const struct field event_fields[] = {
	FIELD(FIELD_STR, egress_event, sandbox),
	FIELD(FIELD_U64, egress_event, generation),
	FIELD(FIELD_U64, egress_event, at_ms),
	FIELD(FIELD_STR, egress_event, kind),
	FIELD(FIELD_STR, egress_event, name),
	FIELD(FIELD_U32, egress_event, port),
	FIELD(FIELD_STR, egress_event, rule),
	FIELD(FIELD_U32, egress_event, count),
	{ 0 }
};

static const struct field counts_fields[] = {
	FIELD(FIELD_STR, egress_counts, sandbox),
	FIELD(FIELD_U64, egress_counts, generation),
	FIELD(FIELD_U64, egress_counts, connections),
	FIELD(FIELD_U64, egress_counts, requests),
	FIELD(FIELD_U64, egress_counts, bytes_out),
	FIELD(FIELD_U64, egress_counts, bytes_in),
	{ 0 }
};

static const struct field ask_fields[] = {
	FIELD(FIELD_STR, egress_ask, sandbox),
	FIELD(FIELD_U64, egress_ask, generation),
	FIELD(FIELD_U64, egress_ask, number),
	{ 0 }
};

static const struct field answer_fields[] = {
	FIELD(FIELD_U64, egress_answer, number),
	FIELD(FIELD_U64, egress_answer, since_ns),
	FIELD(FIELD_U64, egress_answer, requests),
	{ 0 }
};

static const struct field *const rows[EGRESS_KIND_COUNT] = {
	[EGRESS_POLICY] = policy_fields,
	[EGRESS_RULE] = rule_fields,
	[EGRESS_SECRET] = secret_fields,
	[EGRESS_DROP] = drop_fields,
	[EGRESS_CONFIRM] = confirm_fields,
	[EGRESS_EVENT] = event_fields,
	[EGRESS_COUNTS] = counts_fields,
	[EGRESS_ASK] = ask_fields,
	[EGRESS_ANSWER] = answer_fields,
};
/* clang-format on */

void egress_encode(struct buf *out, enum egress_kind kind, const void *record)
{
	writer_u8(out, EGRESS_VERSION);
	writer_u8(out, (uint8_t)kind);
	record_encode(out, rows[kind], record);
}

int egress_decode(struct bytes packet, enum egress_kind *kind, union egress_any *ret,
		  struct err *e)
{
	struct reader r = reader_make(packet.data, packet.len);
	uint8_t version = reader_u8(&r);
	uint8_t what = reader_u8(&r);

	if (r.bad)
		return err_set(e, ERR_INVALID, "a packet of %zu bytes is too short", packet.len);
	if (version != EGRESS_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "protocol version %u, not %d", version,
			       EGRESS_VERSION);
	if (what >= EGRESS_KIND_COUNT || !rows[what])
		return err_set(e, ERR_INVALID, "unknown kind %u", what);
	if (record_decode((struct bytes){ r.pos, (size_t)(r.end - r.pos) }, rows[what], ret, e) < 0)
		return -1;
	*kind = (enum egress_kind)what;
	return 0;
}

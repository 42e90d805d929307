#include "proto/node.h"

#include <assert.h>

#include "proto/writer.h"

/* clang-format off */
static const struct field target_fields[] = {
	FIELD(FIELD_STR, node_target, request),
	FIELD(FIELD_STR, node_target, sandbox),
	FIELD(FIELD_U64, node_target, generation),
	FIELD(FIELD_U64, node_target, epoch),
	{ 0 }
};

static const struct field image_ask_fields[] = {
	FIELD(FIELD_STR, node_image_ask, request),
	FIELD(FIELD_U32, node_image_ask, op),
	FIELD(FIELD_STR, node_image_ask, source),
	FIELD(FIELD_STR, node_image_ask, digest),
	{ 0 }
};

static const struct field image_fields[] = {
	FIELD(FIELD_STR, node_image, digest),
	FIELD(FIELD_U64, node_image, bytes),
	FIELD(FIELD_STR, node_image, phase),
	FIELD(FIELD_U64, node_image, done),
	FIELD(FIELD_U64, node_image, total),
	{ 0 }
};

#define LIMIT_FIELDS(record, at) \
	FIELD(FIELD_U64, record, at memory_bytes), \
	FIELD(FIELD_U64, record, at disk_bytes), \
	FIELD(FIELD_U32, record, at cpu_milli), \
	FIELD(FIELD_U32, record, at pids), \
	FIELD(FIELD_U32, record, at open_files)
static const struct field create_fields[] = {
	FIELD(FIELD_STR, node_create, request),
	FIELD(FIELD_STR, node_create, sandbox),
	FIELD(FIELD_U64, node_create, generation),
	FIELD(FIELD_U64, node_create, epoch),
	FIELD(FIELD_STR, node_create, image),
	FIELD(FIELD_STR, node_create, runtime),
	LIMIT_FIELDS(node_create, limits.),
	FIELD(FIELD_STR, node_create, trust),
	FIELD(FIELD_U32, node_create, keep_disk),
	{ 0 }
};

static const struct field limit_fields[] = {
	FIELD(FIELD_STR, node_limit, request),
	FIELD(FIELD_STR, node_limit, sandbox),
	FIELD(FIELD_U64, node_limit, generation),
	FIELD(FIELD_U64, node_limit, epoch),
	LIMIT_FIELDS(node_limit, limits.),
	{ 0 }
};

static const struct field stop_fields[] = {
	FIELD(FIELD_STR, node_stop, request),
	FIELD(FIELD_STR, node_stop, sandbox),
	FIELD(FIELD_U64, node_stop, generation),
	FIELD(FIELD_U64, node_stop, epoch),
	FIELD(FIELD_U32, node_stop, grace_ms),
	FIELD(FIELD_U32, node_stop, life),
	{ 0 }
};

#define USAGE_FIELDS(record, at) \
	FIELD(FIELD_U64, record, at since_ms), \
	FIELD(FIELD_U64, record, at cpu_us), \
	FIELD(FIELD_U64, record, at memory_bytes), \
	FIELD(FIELD_U64, record, at memory_peak_bytes), \
	FIELD(FIELD_U64, record, at pids), \
	FIELD(FIELD_U64, record, at pids_peak), \
	FIELD(FIELD_U64, record, at pids_refused), \
	FIELD(FIELD_U64, record, at disk_bytes), \
	FIELD(FIELD_U64, record, at oom_kills)

static const struct field observation_fields[] = {
	FIELD(FIELD_STR, node_observation, sandbox),
	FIELD(FIELD_U64, node_observation, generation),
	FIELD(FIELD_U32, node_observation, presence),
	FIELD(FIELD_U32, node_observation, process),
	FIELD(FIELD_U32, node_observation, cgroup),
	FIELD(FIELD_U32, node_observation, disk),
	FIELD(FIELD_U32, node_observation, runtime),
	FIELD(FIELD_U32, node_observation, link),
	FIELD(FIELD_U32, node_observation, record),
	FIELD(FIELD_U32, node_observation, ready),
	FIELD(FIELD_U32, node_observation, ended),
	FIELD(FIELD_U32, node_observation, life),
	FIELD(FIELD_U32, node_observation, protocol),
	FIELD(FIELD_U64, node_observation, observed_ms),
	FIELD(FIELD_STR, node_observation, address),
	FIELD(FIELD_STR, node_observation, detail),
	USAGE_FIELDS(node_observation, used.),
	{ 0 }
};

static const struct field cursor_fields[] = {
	FIELD(FIELD_STR, node_cursor, request),
	FIELD(FIELD_U32, node_cursor, follow),
	{ 0 }
};

static const struct field capacity_fields[] = {
	FIELD(FIELD_U32, node_capacity, version),
	FIELD(FIELD_U32, node_capacity, cpus),
	FIELD(FIELD_U64, node_capacity, memory_total),
	FIELD(FIELD_U64, node_capacity, memory_available),
	FIELD(FIELD_U64, node_capacity, disk_total),
	FIELD(FIELD_U64, node_capacity, disk_available),
	FIELD(FIELD_U32, node_capacity, sandboxes),
	FIELD(FIELD_STR, node_capacity, cgroups),
	FIELD(FIELD_STR, node_capacity, runtimes),
	FIELD(FIELD_U64, node_capacity, cpu_us),
	FIELD(FIELD_U32, node_capacity, pids),
	FIELD(FIELD_U32, node_capacity, open_files),
	{ 0 }
};

static const struct field usage_fields[] = {
	USAGE_FIELDS(node_usage, ),
	{ 0 }
};

static const struct field lease_fields[] = {
	FIELD(FIELD_STR, node_lease, request),
	FIELD(FIELD_U32, node_lease, op),
	FIELD(FIELD_U64, node_lease, epoch),
	FIELD(FIELD_U64, node_lease, until_ms),
	{ 0 }
};

static const struct field fence_fields[] = {
	FIELD(FIELD_U32, node_fence, state),
	FIELD(FIELD_U64, node_fence, epoch),
	FIELD(FIELD_U64, node_fence, until_ms),
	FIELD(FIELD_U32, node_fence, runs),
	FIELD(FIELD_U32, node_fence, still),
	FIELD(FIELD_U64, node_fence, frozen_ms),
	{ 0 }
};

static const struct field synced_fields[] = {
	FIELD(FIELD_U64, node_synced, at_ms),
	{ 0 }
};

static const struct field group_fields[] = {
	FIELD(FIELD_STR, node_group, request),
	FIELD(FIELD_STR, node_group, sandbox),
	FIELD(FIELD_U64, node_group, generation),
	FIELD(FIELD_U64, node_group, epoch),
	FIELD(FIELD_U32, node_group, op),
	FIELD(FIELD_STR, node_group, name),
	FIELD(FIELD_U32, node_group, pid),
	{ 0 }
};

static const struct field group_seen_fields[] = {
	FIELD(FIELD_STR, node_group_seen, name),
	FIELD(FIELD_U32, node_group_seen, process),
	{ 0 }
};

static const struct field killed_fields[] = {
	FIELD(FIELD_STR, node_killed, request),
	FIELD(FIELD_STR, node_killed, sandbox),
	FIELD(FIELD_U64, node_killed, generation),
	FIELD(FIELD_U64, node_killed, epoch),
	FIELD(FIELD_U32, node_killed, pid),
	FIELD(FIELD_U64, node_killed, boot_ms),
	{ 0 }
};

static const struct field killer_fields[] = {
	FIELD(FIELD_U32, node_killer, memory),
	{ 0 }
};

static const struct field process_ask_fields[] = {
	FIELD(FIELD_STR, node_process_ask, request),
	FIELD(FIELD_STR, node_process_ask, sandbox),
	FIELD(FIELD_U64, node_process_ask, generation),
	FIELD(FIELD_U64, node_process_ask, epoch),
	FIELD(FIELD_STR, node_process_ask, group),
	{ 0 }
};

static const struct field process_fields[] = {
	FIELD(FIELD_U32, node_process, pid),
	FIELD(FIELD_U32, node_process, parent),
	FIELD(FIELD_U32, node_process, state),
	FIELD(FIELD_U64, node_process, memory_bytes),
	FIELD(FIELD_STR, node_process, command),
	{ 0 }
};

static const struct field processes_fields[] = {
	FIELD(FIELD_U32, node_processes, total),
	FIELD(FIELD_U32, node_processes, engine),
	{ 0 }
};

static const struct field nothing_fields[] = {
	FIELD(FIELD_U32, node_nothing, zero),
	{ 0 }
};

#define HAS(name)	name##_fields
#define SIZE(name)	sizeof(struct node_##name)
#define ROW(verb, ask, answer) \
	{ verb, HAS(ask), NULL, HAS(answer), SIZE(ask), 0, SIZE(answer) }
#define ROW_LIST(verb, ask, item, answer) \
	{ verb, HAS(ask), HAS(item), HAS(answer), SIZE(ask), SIZE(item), SIZE(answer) }

static const struct node_verb_row rows[NODE_VERB_COUNT] = {
	[NODE_NONE]	 = { .name = "none" },
	[NODE_IMAGE]	 = ROW_LIST("image", image_ask, image, image),
	[NODE_CREATE]	 = ROW("create", create, observation),
	[NODE_START]	 = ROW("start", target, observation),
	[NODE_OBSERVE]	 = ROW("observe", target, observation),
	[NODE_CONNECT]	 = ROW("connect", target, usage),
	[NODE_STOP]	 = ROW("stop", stop, observation),
	[NODE_DESTROY]	 = ROW("destroy", target, observation),
	[NODE_INVENTORY] = ROW_LIST("inventory", cursor, observation, nothing),
	[NODE_CAPACITY]	 = ROW("capacity", cursor, capacity),
	[NODE_USAGE]	 = ROW("usage", target, usage),
	[NODE_LEASE]	 = ROW("lease", lease, fence),
	[NODE_LIMIT]	 = ROW("limit", limit, nothing),
	[NODE_SYNC]	 = ROW("sync", cursor, synced),
	[NODE_GROUP]	 = ROW_LIST("group", group, group_seen, group_seen),
	[NODE_KILLED]	 = ROW("killed", killed, killer),
	[NODE_PROCESSES] = ROW_LIST("processes", process_ask, process, processes),
};
#undef HAS
#undef SIZE
#undef ROW
#undef ROW_LIST

static const char *const presence_names[PRESENCE_COUNT] = {
	[PRESENCE_UNKNOWN] = "unknown",
	[PRESENCE_ABSENT]  = "absent",
	[PRESENCE_PRESENT] = "present",
};

static const char *const fence_state_names[FENCE_STATE_COUNT] = {
	[FENCE_NONE]	= "none",
	[FENCE_HELD]	= "held",
	[FENCE_FROZEN]	= "frozen",
	[FENCE_KILLING]	= "killing",
	[FENCE_CLEAR]	= "clear",
};
/* clang-format on */

const char *fence_state_name(enum fence_state s)
{
	return s < FENCE_STATE_COUNT ? fence_state_names[s] : "unknown";
}

const char *presence_name(enum presence p)
{
	return p < PRESENCE_COUNT ? presence_names[p] : "unknown";
}

const struct node_verb_row *node_verb_row(enum node_verb verb)
{
	return &rows[verb];
}

static const struct field *fields_of(enum node_verb verb, enum node_kind kind)
{
	const struct field *const by_kind[NODE_KIND_COUNT] = {
		[NODE_REQUEST] = rows[verb].request,
		[NODE_PART] = rows[verb].part,
		[NODE_REPLY] = rows[verb].reply,
	};

	return by_kind[kind];
}

static void head_encode(struct buf *out, enum node_verb verb, enum node_kind kind, uint64_t id)
{
	writer_u8(out, NODE_VERSION);
	writer_u8(out, (uint8_t)verb);
	writer_u8(out, (uint8_t)kind);
	writer_u64(out, id);
}

void node_encode(struct buf *out, enum node_verb verb, enum node_kind kind, uint64_t id,
		 const void *record)
{
	assert(fields_of(verb, kind));
	head_encode(out, verb, kind, id);
	record_encode(out, fields_of(verb, kind), record);
}

void node_encode_error(struct buf *out, enum node_verb verb, uint64_t id, const struct err *why)
{
	head_encode(out, verb, NODE_ERROR, id);
	writer_u32(out, why->code);
	writer_str(out, why->msg);
	writer_str(out, why->fix);
}

int node_head_decode(struct bytes packet, struct node_head *ret, struct err *e)
{
	struct reader r = reader_make(packet.data, packet.len);
	uint8_t version = reader_u8(&r);
	uint8_t verb = reader_u8(&r);
	uint8_t kind = reader_u8(&r);
	uint64_t id = reader_u64(&r);

	if (r.bad)
		return err_set(e, ERR_INVALID, "a packet of %zu bytes is too short", packet.len);
	if (version != NODE_VERSION)
		return err_set(e, ERR_UNSUPPORTED, "protocol version %u, not %d", version,
			       NODE_VERSION);
	if (verb <= NODE_NONE || verb >= NODE_VERB_COUNT || kind >= NODE_KIND_COUNT)
		return err_set(e, ERR_INVALID, "unknown verb %u or kind %u", verb, kind);
	*ret = (struct node_head){
		.verb = (enum node_verb)verb,
		.kind = (enum node_kind)kind,
		.id = id,
		.body = { r.pos, (size_t)(r.end - r.pos) },
	};
	return 0;
}

int node_body_decode(const struct node_head *h, void *record, struct err *e)
{
	const struct field *fields = fields_of(h->verb, h->kind);

	if (!fields)
		return err_set(e, ERR_INVALID, "%s has no body of kind %u", rows[h->verb].name,
			       h->kind);
	return record_decode(h->body, fields, record, e) < 0
		       ? err_wrap(e, "%s", rows[h->verb].name)
		       : 0;
}

void node_error_decode(const struct node_head *h, struct err *ret)
{
	struct reader r = reader_make(h->body.data, h->body.len);
	enum err_code code = err_code_by_number(reader_u32(&r));
	char msg[sizeof(ret->msg)], fix[sizeof(ret->fix)];

	reader_str(&r, msg, sizeof(msg));
	reader_str(&r, fix, sizeof(fix));
	if (!reader_done(&r)) {
		err_set(ret, ERR_INTERNAL, "berth-node sent an error that cannot be read");
		return;
	}
	err_set(ret, code, "%s", msg);
	err_fix(ret, "%s", fix);
}

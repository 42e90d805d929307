#include "proto/node.h"

#include "test.h"

static struct bytes wire_of(const struct buf *b)
{
	return (struct bytes){ (const uint8_t *)b->data, b->len };
}

TEST(a_create_comes_out_as_it_went_in)
{
	struct node_create c = {
		.sandbox = "sb_c1_x",
		.generation = 3,
		.image = "sha256:abc",
		.runtime = "crun",
		.limits = { .memory_bytes = 1ULL << 33, .pids = 64 },
	};
	cleanup(buf_done) struct buf b = buf_make(NODE_PACKET_MAX);
	struct node_create back;
	struct node_head h;
	struct err e;

	node_encode(&b, NODE_CREATE, NODE_REQUEST, 42, &c);
	CHECK_OK(node_head_decode(wire_of(&b), &h, &e), &e);
	CHECK_INT(h.id, 42);
	CHECK_INT(h.verb, NODE_CREATE);
	CHECK_OK(node_body_decode(&h, &back, &e), &e);
	CHECK_STR(back.sandbox, "sb_c1_x");
	CHECK_INT(back.limits.memory_bytes, 1LL << 33);
	CHECK_INT(back.limits.pids, 64);
}

TEST(every_verb_has_a_request_and_a_reply_that_fit_a_packet)
{
	for (int v = NODE_NONE + 1; v < NODE_VERB_COUNT; v++) {
		const struct node_verb_row *row = node_verb_row((enum node_verb)v);

		CHECK(row->request && row->reply && row->name);
		CHECK(row->request_size < NODE_PACKET_MAX / 2);
		CHECK(row->reply_size < NODE_PACKET_MAX / 2);
		CHECK(row->request_size <= sizeof(union node_any));
		CHECK(row->part_size <= sizeof(union node_any));
		CHECK(row->reply_size <= sizeof(union node_any));
	}
}

TEST(cut_packets_and_unknown_verbs_are_refused)
{
	struct node_target t = { .sandbox = "sb_c1_x", .generation = 1 }, back;
	cleanup(buf_done) struct buf b = buf_make(NODE_PACKET_MAX);
	struct node_head h;
	struct err e;

	node_encode(&b, NODE_OBSERVE, NODE_REQUEST, 1, &t);
	for (size_t len = 0; len < b.len; len++) {
		struct bytes cut = { (const uint8_t *)b.data, len };

		CHECK(node_head_decode(cut, &h, &e) < 0 || node_body_decode(&h, &back, &e) < 0);
	}
	b.data[1] = (char)NODE_VERB_COUNT;
	CHECK_ERR(node_head_decode(wire_of(&b), &h, &e), &e, ERR_INVALID);
	b.data[0] = 9;
	CHECK_ERR(node_head_decode(wire_of(&b), &h, &e), &e, ERR_UNSUPPORTED);
}

TEST(a_socket_of_the_router_says_which_it_is)
{
	for (unsigned kind = 0; kind <= ROUTER_SOCKET_COUNT; kind++) {
		cleanup(buf_done) struct buf b = buf_make(ROUTER_PACKET_MAX);
		enum router_socket_kind back = ROUTER_NONE;
		struct err e = { 0 };

		router_socket_encode(&b, (enum router_socket_kind)kind);
		if (kind == ROUTER_NONE || kind == ROUTER_SOCKET_COUNT) {
			CHECK_ERR(router_socket_decode(wire_of(&b), &back, &e), &e, ERR_INVALID);
			continue;
		}
		CHECK_OK(router_socket_decode(wire_of(&b), &back, &e), &e);
		CHECK_INT(back, kind);
		b.len--;
		CHECK(router_socket_decode(wire_of(&b), &back, &e) < 0);
	}
}

TEST(an_error_keeps_its_code_words_and_remedy)
{
	cleanup(buf_done) struct buf b = buf_make(NODE_PACKET_MAX);
	struct err e = { 0 }, back = { 0 };
	struct node_head h;

	err_set(&e, ERR_BUSY, "full");
	err_fix(&e, "wait");
	node_encode_error(&b, NODE_CREATE, 7, &e);
	CHECK_OK(node_head_decode(wire_of(&b), &h, &e), &e);
	node_error_decode(&h, &back);
	CHECK_INT(back.code, ERR_BUSY);
	CHECK_STR(back.msg, "full");
	CHECK_STR(err_remediation(&back), "wait");
}

/* The types of a record's members, in their order: s text, i 32 bits, l 64 bits. */
static void shape_of(const struct field *fields, char *to, size_t size)
{
	static const char letters[] = { [FIELD_U32] = 'i', [FIELD_U64] = 'l', [FIELD_STR] = 's' };
	size_t n = 0;

	for (; fields && fields->type != FIELD_END; fields++) {
		CHECK(n + 1 < size);
		to[n++] = letters[fields->type];
	}
	to[n] = '\0';
}

/*
 * What travels, by hand. A member that is added to a record and forgotten in its table would be
 * zero on the other side: add it here too.
 */
TEST(every_record_travels_in_its_shape)
{
#define LIMITS      "lliii"
#define TARGET      "ssll"
#define OBSERVATION "sliiiiiiiiiiilsslllllllll"
#define USAGE       "lllllllll"
	static const struct {
		const char *name, *request, *part, *reply;
	} want[NODE_VERB_COUNT] = {
		[NODE_NONE] = { "none", "", "", "" },
		[NODE_IMAGE] = { "image", "siss", "slsll", "slsll" },
		[NODE_CREATE] = { "create", "ssllss" LIMITS "si", "", OBSERVATION },
		[NODE_START] = { "start", TARGET, "", OBSERVATION },
		[NODE_OBSERVE] = { "observe", TARGET, "", OBSERVATION },
		[NODE_CONNECT] = { "connect", TARGET, "", USAGE },
		[NODE_STOP] = { "stop", "ssllii", "", OBSERVATION },
		[NODE_DESTROY] = { "destroy", TARGET, "", OBSERVATION },
		[NODE_INVENTORY] = { "inventory", "si", OBSERVATION, "i" },
		[NODE_CAPACITY] = { "capacity", "si", "", "iillllisslii" },
		[NODE_USAGE] = { "usage", TARGET, "", USAGE },
		[NODE_LEASE] = { "lease", "sill", "", "illiil" },
		[NODE_LIMIT] = { "limit", "ssll" LIMITS, "", "i" },
		[NODE_SYNC] = { "sync", "si", "", "l" },
		[NODE_GROUP] = { "group", "ssllisi", "si", "si" },
		[NODE_KILLED] = { "killed", "ssllil", "", "i" },
		[NODE_PROCESSES] = { "processes", "sslls", "iiils", "ii" },
	};
	char shape[64];

	for (int v = 0; v < NODE_VERB_COUNT; v++) {
		const struct node_verb_row *row = node_verb_row((enum node_verb)v);

		CHECK_STR(row->name, want[v].name);
		shape_of(row->request, shape, sizeof(shape));
		CHECK_STR(shape, want[v].request);
		shape_of(row->part, shape, sizeof(shape));
		CHECK_STR(shape, want[v].part);
		shape_of(row->reply, shape, sizeof(shape));
		CHECK_STR(shape, want[v].reply);
	}
}

TEST(a_head_says_why_it_cannot_be_read)
{
	struct node_target t = { .request = "rq", .sandbox = "sb", .generation = 1, .epoch = 2 };
	cleanup(buf_done) struct buf b = buf_make(NODE_PACKET_MAX);
	struct node_target back = { 0 };
	struct node_head h = { .id = 77 };
	struct err e;

	node_encode(&b, NODE_DESTROY, NODE_REQUEST, 1ULL << 60, &t);
	CHECK_OK(node_head_decode(wire_of(&b), &h, &e), &e);
	CHECK(h.id == 1ULL << 60 && h.kind == NODE_REQUEST && h.body.len == b.len - 11);
	CHECK_OK(node_body_decode(&h, &back, &e), &e);
	CHECK_STR(back.request, "rq");
	CHECK_STR(back.sandbox, "sb");
	CHECK(back.generation == 1 && back.epoch == 2);
	for (size_t len = 0; len < 11; len++) {
		struct bytes cut = { (const uint8_t *)b.data, len };

		CHECK_ERR(node_head_decode(cut, &h, &e), &e, ERR_INVALID);
		CHECK(strstr(e.msg, "too short"));
	}
	b.data[2] = (char)NODE_KIND_COUNT;
	CHECK_ERR(node_head_decode(wire_of(&b), &h, &e), &e, ERR_INVALID);
	b.data[2] = NODE_REQUEST;
	b.data[1] = NODE_NONE;
	CHECK_ERR(node_head_decode(wire_of(&b), &h, &e), &e, ERR_INVALID);
}

TEST(a_kind_without_a_body_is_refused)
{
	struct node_target t = { .sandbox = "sb" };
	cleanup(buf_done) struct buf b = buf_make(NODE_PACKET_MAX);
	union node_any back;
	struct node_head h;
	struct err e;

	node_encode(&b, NODE_DESTROY, NODE_REQUEST, 1, &t);
	b.data[2] = NODE_PART; /* it has none */
	CHECK_OK(node_head_decode(wire_of(&b), &h, &e), &e);
	CHECK_ERR(node_body_decode(&h, &back, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "destroy has no body"));
	b.data[2] = NODE_REPLY; /* it has another */
	CHECK_OK(node_head_decode(wire_of(&b), &h, &e), &e);
	CHECK_ERR(node_body_decode(&h, &back, &e), &e, ERR_INVALID);
	CHECK(strncmp(e.msg, "destroy: ", 9) == 0);
}

TEST(an_error_that_is_cut_is_ours)
{
	cleanup(buf_done) struct buf b = buf_make(NODE_PACKET_MAX);
	struct err e = { 0 };
	struct node_head h;

	err_set(&e, ERR_BUSY, "full");
	err_fix(&e, "wait");
	node_encode_error(&b, NODE_CREATE, 7, &e);
	for (size_t len = 11; len < b.len; len++) {
		struct bytes cut = { (const uint8_t *)b.data, len };
		struct err back = { 0 };

		CHECK_OK(node_head_decode(cut, &h, &e), &e);
		CHECK_INT(h.kind, NODE_ERROR);
		node_error_decode(&h, &back);
		CHECK_INT(back.code, ERR_INTERNAL);
		CHECK(strstr(back.msg, "cannot be read"));
	}
}

TEST(presence_and_fence_have_their_words)
{
	static const char *const presence[] = { "unknown", "absent", "present" };
	static const char *const fence[] = { "none", "held", "frozen", "killing", "clear" };

	CHECK_INT(array_len(presence), PRESENCE_COUNT);
	CHECK_INT(array_len(fence), FENCE_STATE_COUNT);
	for (int p = 0; p < PRESENCE_COUNT; p++)
		CHECK_STR(presence_name((enum presence)p), presence[p]);
	for (int s = 0; s < FENCE_STATE_COUNT; s++)
		CHECK_STR(fence_state_name((enum fence_state)s), fence[s]);
	CHECK_STR(presence_name(PRESENCE_COUNT), "unknown"); /* what a newer one may send */
	CHECK_STR(fence_state_name(FENCE_STATE_COUNT), "unknown");
}

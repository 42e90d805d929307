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

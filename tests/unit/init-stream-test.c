/* Frames to and from an init that the test plays, also one that means harm. */
#include "berthd/exec/init-stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#define WHOLE_MAX (16 * 1024)

static struct reactor r;

static struct world {
	struct init_stream *stream;
	int init; /* the test's end */
	struct buf pieces;
	struct buf whole; /* type and length of each */
	int frames, gones, sents;
	bool pause, close; /* what piece() does */
	struct err why;
	bool wrong; /* gone() said why */
} w;

static bool on_piece(void *data, enum frame_type type, uint8_t *bytes, size_t len)
{
	CHECK(data == &w && w.stream && w.gones == 0);
	CHECK(type == FRAME_STDOUT || type == FRAME_DATA);
	CHECK(len > 0 && len <= FRAME_PAYLOAD_MAX);
	buf_add(&w.pieces, bytes, len);
	memset(bytes - FRAME_HEAD, 0xee, FRAME_HEAD); /* which is allowed */
	if (w.close)
		init_stream_close(take_ptr(w.stream));
	return w.pause;
}

static void on_frame(void *data, const struct frame *f)
{
	CHECK(data == &w && w.stream && w.gones == 0);
	CHECK(f->type > FRAME_NONE && f->type < FRAME_TYPE_END);
	CHECK(f->type != FRAME_STDOUT && f->type != FRAME_DATA);
	CHECK(f->payload.len <= WHOLE_MAX);
	buf_addf(&w.whole, "%u:%zu ", f->type, f->payload.len);
	w.frames++;
}

static void on_gone(void *data, const struct err *why)
{
	CHECK(data == &w && w.stream);
	w.gones++;
	w.wrong = why;
	if (why)
		w.why = *why;
	init_stream_close(take_ptr(w.stream));
}

static void on_sent(void *data, bool broken)
{
	CHECK(data == &w && w.stream && !broken);
	w.sents++;
}

static const struct init_stream_events events = {
	.pieces = FRAME_BIT(FRAME_STDOUT) | FRAME_BIT(FRAME_DATA),
	.piece = on_piece,
	.frame = on_frame,
	.gone = on_gone,
	.sent = on_sent,
};

static void turn(void)
{
	for (int i = 0; i < 20; i++)
		(void)uv_run(&r.loop, UV_RUN_NOWAIT);
}

static void begin(void)
{
	int pair[2];

	if (!r.read_buffer) {
		CHECK(uv_loop_init(&r.loop) == 0);
		r.read_buffer = xcalloc(1, REACTOR_READ_SIZE);
	}
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	w = (struct world){ .init = pair[0], .pieces = buf_make(1 << 20), .whole = buf_make(4096) };
	w.stream = init_stream_open(&r, pair[1], &events, &w);
	CHECK(w.stream);
}

static void end(void)
{
	init_stream_close(take_ptr(w.stream));
	close_fd(&w.init);
	turn();
	CHECK(uv_loop_alive(&r.loop) == 0); /* its memory is gone with its handle */
	buf_done(&w.pieces);
	buf_done(&w.whole);
}

static void say(const void *data, size_t len)
{
	CHECK(send(w.init, data, len, MSG_NOSIGNAL) == (ssize_t)len);
}

TEST(frames_are_the_same_however_their_bytes_are_cut)
{
	cleanup(buf_done) struct buf wire = buf_make(1 << 16);

	frame_add_u32(&wire, FRAME_STARTED, 42);
	frame_add(&wire, FRAME_STDOUT, "hello ", 6);
	frame_add(&wire, FRAME_STDOUT, NULL, 0);
	frame_add(&wire, FRAME_TICK, NULL, 0);
	frame_add(&wire, FRAME_DATA, "world", 5);
	frame_add(&wire, FRAME_EXITED, "no record", 9);
	for (size_t step = 1; step <= wire.len; step += step < 12 ? 1 : 7) {
		begin();
		for (size_t at = 0; at < wire.len; at += step) {
			say(wire.data + at, wire.len - at < step ? wire.len - at : step);
			turn();
		}
		CHECK_STR(buf_str(&w.pieces), "hello world");
		CHECK_STR(buf_str(&w.whole), "6:4 18:0 9:9 ");
		CHECK_INT(w.gones, 0);
		end();
	}
}

static void say_head(uint8_t type, uint32_t len)
{
	uint8_t head[FRAME_HEAD] = { type, (uint8_t)(len >> 24), (uint8_t)(len >> 16),
				     (uint8_t)(len >> 8), (uint8_t)len };

	say(head, sizeof(head));
	turn();
}

TEST(what_is_no_frame_or_too_long_a_one_ends_it_once)
{
	static const struct {
		uint8_t type;
		uint32_t len;
	} bad[] = {
		{ FRAME_NONE, 0 },
		{ FRAME_TYPE_END, 0 },
		{ 255, 3 },
		{ FRAME_STARTED, WHOLE_MAX + 1 },
		{ FRAME_ERROR, UINT32_MAX },
		{ FRAME_STDOUT, FRAME_PAYLOAD_MAX + 1 },
		{ FRAME_DATA, UINT32_MAX },
	};

	for (size_t i = 0; i < array_len(bad); i++) {
		begin();
		say_head(FRAME_TICK, 0);
		say_head(bad[i].type, bad[i].len);
		CHECK_INT(w.frames, 1);
		CHECK_INT(w.gones, 1);
		CHECK(w.wrong && w.why.code == ERR_INTERNAL);
		end();
	}
}

TEST(the_longest_frames_are_taken)
{
	static uint8_t bytes[FRAME_PAYLOAD_MAX];

	begin();
	say_head(FRAME_STARTED, WHOLE_MAX);
	say(bytes, WHOLE_MAX);
	turn();
	CHECK_STR(buf_str(&w.whole), "6:16384 ");
	say_head(FRAME_DATA, FRAME_PAYLOAD_MAX);
	for (size_t at = 0; at < sizeof(bytes); at += 8192) {
		say(bytes + at, 8192);
		turn();
	}
	CHECK_INT(w.pieces.len, FRAME_PAYLOAD_MAX);
	CHECK_INT(w.gones, 0);
	end();
}

TEST(an_end_in_the_middle_of_a_frame_is_an_end_and_no_frame)
{
	begin();
	say_head(FRAME_EXITED, 100);
	say("some", 4);
	turn();
	close_fd(&w.init);
	w.init = -1;
	turn();
	CHECK_INT(w.gones, 1);
	CHECK(!w.wrong);
	CHECK_INT(w.frames, 0);
	end();
}

/* The CHECKs of the callbacks are the test: whatever comes out is known, and of a sane length. */
TEST(random_bytes_are_frames_or_the_end)
{
	srandom(20261118);
	for (int round = 0; round < 2000; round++) {
		uint8_t bytes[64];

		begin();
		for (size_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(random() % 3 ? random() % 4 : random());
		for (int i = 0; i < 8 && w.stream; i++)
			say(bytes + (size_t)i * 8, 8), turn();
		CHECK(w.gones <= 1);
		end();
	}
}

TEST(nothing_is_called_after_it_was_closed_from_within)
{
	cleanup(buf_done) struct buf wire = buf_make(4096);

	begin();
	w.close = true;
	frame_add(&wire, FRAME_STDOUT, "a", 1);
	frame_add(&wire, FRAME_STDOUT, "b", 1);
	frame_add(&wire, FRAME_TICK, NULL, 0);
	frame_add(&wire, FRAME_NONE, NULL, 0);
	say(wire.data, wire.len);
	turn();
	CHECK_STR(buf_str(&w.pieces), "a");
	CHECK_INT(w.frames + w.gones, 0);
	end();
}

TEST(a_full_owner_gets_no_more_before_it_resumes)
{
	begin();
	w.pause = true;
	say_head(FRAME_STDOUT, 2);
	say("a", 1);
	turn();
	CHECK(init_stream_is_paused(w.stream));
	say("b", 1);
	turn();
	CHECK_STR(buf_str(&w.pieces), "a");
	init_stream_resume(w.stream);
	turn();
	CHECK_STR(buf_str(&w.pieces), "ab");
	end();
}

/* All that has come, as whole frames of STDIN with what was sent. */
static size_t read_all(struct buf *have)
{
	char chunk[65536];
	ssize_t n;

	while ((n = recv(w.init, chunk, sizeof(chunk), MSG_DONTWAIT)) > 0) {
		buf_add(have, chunk, (size_t)n);
		turn();
	}
	CHECK(n < 0 && errno == EAGAIN);
	return have->len;
}

TEST(what_the_socket_does_not_take_waits_and_arrives_whole)
{
	static char bytes[100000];
	cleanup(buf_done) struct buf have = buf_make(4 << 20);
	struct frame f;
	struct err e;
	size_t at = 0;

	begin();
	init_stream_send(w.stream, FRAME_STDIN_END, NULL, 0);
	CHECK_INT(init_stream_backlog(w.stream), 0); /* out at once: sent() says nothing of it */
	for (int i = 0; i < 20; i++) {
		memset(bytes, 'a' + i, sizeof(bytes));
		init_stream_send(w.stream, FRAME_STDIN, bytes, sizeof(bytes));
	}
	CHECK(init_stream_backlog(w.stream) > 1000000);
	CHECK_INT(w.sents, 0); /* never from within */
	CHECK_INT(read_all(&have), FRAME_HEAD + 20 * (FRAME_HEAD + sizeof(bytes)));
	CHECK_INT(init_stream_backlog(w.stream), 0);
	CHECK(w.sents > 0);
	for (int i = -1; i < 20; i++) {
		struct bytes wire = { (const uint8_t *)have.data + at, have.len - at };
		ssize_t n = frame_next(wire, &f, &e);

		CHECK(n > 0);
		CHECK_INT(f.type, i < 0 ? FRAME_STDIN_END : FRAME_STDIN);
		CHECK_INT(f.payload.len, i < 0 ? 0 : sizeof(bytes));
		memset(bytes, 'a' + i, sizeof(bytes));
		CHECK(memcmp(f.payload.data, bytes, f.payload.len) == 0);
		at += (size_t)n;
	}
	end();
}

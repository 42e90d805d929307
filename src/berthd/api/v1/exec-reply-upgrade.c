/*
 * Frames both ways on an upgraded connection. The client sends EXEC, STDIN,
 * STDIN_END, SIGNAL and RESIZE; it gets STARTED, STDOUT, STDERR and then EXITED or
 * ERROR. A client that closes early wants the whole tree killed. One that named its
 * exec gets TAKEN, too: should we be killed, it knows what of its input arrived.
 */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/exec-replies.h"
#include "berthd/api/v1/execs.h"
#include "berthd/front/request.h"
#include "http/tunnel.h"

#define IN_MAX    (FRAME_HEAD + FRAME_PAYLOAD_MAX + 64 * 1024)
#define SEND_MARK (512 * 1024) /* waiting for a command that does not read its input */

struct tunnel {
	struct http_tunnel *t; /* NULL: closed */
	struct request *rq;
	struct tail *tail; /* NULL: over */
	struct buf in;
	bool asked, started; /* what comes in between waits */
	bool named;          /* its client knows what to ask for if we are killed */
	bool held;           /* the command does not read what it was given */
	bool over;
	unsigned inside; /* in take_frames(): the memory stays until that is through */
};

static void tunnel_free(struct tunnel *u)
{
	if (!u->over || u->inside > 0)
		return;
	buf_done(&u->in);
	free(u);
}

static void tunnel_end(struct tunnel *u, int status)
{
	if (u->t)
		http_tunnel_close(take_ptr(u->t));
	request_end(u->rq, status);
	u->over = true;
	tunnel_free(u);
}

static void send_frame(struct tunnel *u, enum frame_type type, const struct buf *payload)
{
	cleanup(buf_done) struct buf out = buf_make(FRAME_PAYLOAD_MAX);

	frame_add(&out, type, payload->data, payload->len);
	if (u->t)
		(void)http_tunnel_write(u->t, out.data, out.len);
}

static void send_error(struct tunnel *u, const struct err *why)
{
	cleanup(buf_done) struct buf out = buf_make(FRAME_PAYLOAD_MAX);
	struct err told = *why;

	err_fix(&told, "%s", err_remediation(why)); /* as in every other answer */
	frame_add_error(&out, &told);
	if (u->t)
		(void)http_tunnel_write(u->t, out.data, out.len);
}

static void take_frames(struct tunnel *u);

static void on_started(struct tail *t, uint32_t pid)
{
	struct tunnel *u = t->data;
	cleanup(buf_done) struct buf out = buf_make(64);

	frame_add_u32(&out, FRAME_STARTED, pid);
	(void)http_tunnel_write(u->t, out.data, out.len);
	u->started = true;
	http_tunnel_resume(u->t);
	take_frames(u);
}

/* The room in front of the bytes becomes the head of their frame: one write, no copy. */
static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	struct tunnel *u = t->data;

	frame_head(data - FRAME_HEAD, type, len);
	return http_tunnel_write(u->t, data - FRAME_HEAD, len + FRAME_HEAD);
}

static void on_taken(struct tail *t, uint32_t bytes)
{
	struct tunnel *u = t->data;
	cleanup(buf_done) struct buf out = buf_make(64);

	frame_add_u32(&out, FRAME_TAKEN, bytes);
	if (u->named && u->t)
		(void)http_tunnel_write(u->t, out.data, out.len);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct tunnel *u = t->data;
	cleanup(buf_done) struct buf record = buf_make(EXEC_EXIT_MAX);

	tail_close(take_ptr(u->tail));
	if (why) {
		send_error(u, why);
	} else {
		exec_exit_encode(&record, exit);
		send_frame(u, FRAME_EXITED, &record);
	}
	tunnel_end(u, 101);
}

static size_t backlog(const struct tunnel *u)
{
	return u->tail && u->tail->exec ? exec_send_backlog(u->tail->exec) : 0;
}

static void on_drained(struct tail *t)
{
	struct tunnel *u = t->data;

	if (!u->held || backlog(u) > SEND_MARK)
		return;
	u->held = false;
	http_tunnel_resume(u->t);
}

/* Its client sets the pace past the cap, so there is no gap; see exec.c. */
static const struct tail_events sink = {
	.started = on_started,
	.output = on_output,
	.finished = on_finished,
	.taken = on_taken,
	.drained = on_drained,
};

static void give_up(struct tunnel *u)
{
	if (!u->tail)
		return;
	exec_abandon(u->tail);
	tail_close(take_ptr(u->tail));
}

static void refuse(struct tunnel *u, const struct err *why)
{
	give_up(u);
	send_error(u, why);
	tunnel_end(u, 400);
}

static int begin(struct tunnel *u, const struct frame *f, struct err *e)
{
	struct exec_begin b = { .sandbox = u->rq->param };

	if (u->asked || f->type != FRAME_EXEC)
		return err_set(e, ERR_INVALID, "the first frame must be EXEC, and only that one");
	if (exec_request_decode(f->payload, &b.ask, e) < 0)
		return -1;
	if (exec_id_allow(u->rq, b.ask.id, e) < 0) {
		exec_request_done(&b.ask);
		return -1;
	}
	b.ask.flags &= EXEC_CLIENT_FLAGS;
	u->asked = true;
	u->named = b.ask.id[0];
	b.keep = b.ask.flags & EXEC_KEEP;
	exec_begin_for(u->rq, &b, u->tail);
	return 0;
}

/* init hangs up on what it cannot read. */
static int check_frame(const struct frame *f, struct err *e)
{
	struct exec_size size;
	uint32_t signum;

	if (f->type == FRAME_RESIZE)
		return exec_size_decode(f->payload, &size, e);
	if (f->type != FRAME_SIGNAL)
		return 0;
	if (frame_u32(f, &signum, e) < 0)
		return -1;
	if (signum == 0 || signum > EXEC_SIGNUM_MAX)
		return err_set(e, ERR_INVALID, "there is no signal %u", signum);
	return 0;
}

static int take_frame(struct tunnel *u, const struct frame *f, struct err *e)
{
	if (!u->asked || f->type == FRAME_EXEC)
		return begin(u, f, e);
	if (f->type != FRAME_STDIN && f->type != FRAME_STDIN_END && f->type != FRAME_SIGNAL &&
	    f->type != FRAME_RESIZE)
		return err_set(e, ERR_INVALID, "a client may not send frames of type %u", f->type);
	if (check_frame(f, e) < 0)
		return -1;
	if (u->tail->exec)
		exec_send(u->tail->exec, f->type, f->payload.data, f->payload.len);
	return 0;
}

/* No more from the client than the command takes. */
static void hold_back(struct tunnel *u)
{
	if (backlog(u) <= SEND_MARK)
		return;
	u->held = true;
	http_tunnel_pause(u->t);
}

/* Frames are passed on as they become whole; what is left waits for the rest. */
static void take_whole_frames(struct tunnel *u)
{
	size_t used = 0;
	struct frame f;
	struct err e;
	ssize_t n = 0;

	while (!u->asked || u->started) {
		struct bytes rest = { (const uint8_t *)u->in.data + used, u->in.len - used };

		n = frame_next(rest, &f, &e);
		if (n <= 0)
			break;
		used += (size_t)n;
		if (take_frame(u, &f, &e) < 0)
			return refuse(u, &e);
		if (!u->t) /* it ended right there */
			return;
	}
	if (n < 0)
		return refuse(u, &e);
	buf_drop(&u->in, used);
	if (u->asked && !u->started)
		http_tunnel_pause(u->t);
	hold_back(u);
}

static void take_frames(struct tunnel *u)
{
	u->inside++;
	take_whole_frames(u);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `inside` above holds it until here */
	u->inside--;
	tunnel_free(u);
}

static size_t on_data(void *data, const char *bytes, size_t len)
{
	struct tunnel *u = data;

	buf_add(&u->in, bytes, len);
	take_frames(u);
	return len;
}

static void on_drain(void *data)
{
	struct tunnel *u = data;

	if (u->tail)
		tail_resume(u->tail);
}

static void on_gone(void *data)
{
	struct tunnel *u = data;

	u->t = NULL;
	give_up(u);
	tunnel_end(u, 499);
}

static const struct http_tunnel_events tunnel_events = { on_data, on_drain, on_gone };

void exec_tunnel(struct request *rq)
{
	struct tunnel *u = xcalloc(1, sizeof(*u));

	u->rq = rq;
	u->tail = tail_new(rq->reactor, &sink, u);
	u->in = buf_make(IN_MAX);
	rq->on_gone = NULL;
	u->t = http_upgrade(take_ptr(rq->x), "berth-exec", &tunnel_events, u);
}

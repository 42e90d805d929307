#include "api/exec/exec.h"

#include <stdlib.h>
#include <string.h>

#include "api/berthd.h"
#include "api/exec/sinks.h"
#include "api/init-way.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/str.h"

#define SMALL_MAX     8192
#define START_MS      30000 /* for init to start the command, or say why not */
#define DEADLINE_MORE 15000 /* for init to kill a tree and say so */

static void exec_free(struct exec *x)
{
	exec_request_done(&x->ask);
	buf_done(&x->small);
	free(x);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct exec *x = handle->data;

	if (--x->pending == 0)
		exec_free(x);
}

/* A call came back. True if nobody waits for it any more. */
static bool came_back_late(struct exec *x)
{
	bool late = x->ended;

	if (--x->pending == 0 && late)
		exec_free(x);
	return late;
}

/* Its memory goes with the last of what is pending, and nowhere else. */
static void exec_close(struct exec *x)
{
	x->ended = true;
	if (x->piped)
		uv_close((uv_handle_t *)&x->pipe, on_handle_closed);
	if (x->timing)
		uv_close((uv_handle_t *)&x->deadline, on_handle_closed);
	if (x->pending == 0) /* it ended on its way there: no handle, no call is left */
		exec_free(x);
}

static void finish(struct exec *x, const struct exec_exit *exit, const struct err *why)
{
	if (x->ended)
		return;
	x->ended = true;
	x->sink->finished(x, exit, why);
	exec_close(x);
}

void exec_cancel(struct exec *x)
{
	if (!x->ended)
		exec_close(x); /* init sees the connection close and kills the tree */
}

/* ---- how it ended: what only the host can know ---- */

static void on_usage(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct exec *x = data;

	(void)fd;
	if (came_back_late(x))
		return;
	if (!why && places_oom(&x->reactor->berthd->places, x->sandbox, record->usage.oom_kills))
		x->exit.kind = EXEC_OOM;
	finish(x, &x->exit, NULL);
}

static const struct node_call_events usage_events = { .on_done = on_usage };

/* Killed by nobody we know of, or gone without a word: was it the kernel, for memory? */
static void settle(struct exec *x)
{
	bool doubt = x->exit.kind == EXEC_LOST ||
		     (x->exit.kind == EXEC_SIGNALLED && x->exit.signum == 9);
	struct node_target t = { .generation = x->generation };

	if (x->reading)
		uv_read_stop((uv_stream_t *)&x->pipe);
	x->reading = false;
	if (!doubt)
		return finish(x, &x->exit, NULL);
	x->pending++; /* the call counts as one: it comes back to us */
	memcpy(t.request, x->request, sizeof(t.request));
	memcpy(t.sandbox, x->sandbox, sizeof(t.sandbox));
	node_call(&x->reactor->node, NODE_USAGE, &t, -1, &usage_events, x);
}

static void lost(struct exec *x)
{
	x->exit = (struct exec_exit){ .kind = EXEC_LOST };
	settle(x);
}

/* A command that never ends may run for ever; one that has a limit must end by it. */
static void on_deadline(uv_timer_t *timer)
{
	struct exec *x = timer->data;

	if (!x->ended && x->exit.kind == EXEC_NONE)
		lost(x);
}

static uint64_t deadline_after(uint64_t timeout_ms)
{
	return timeout_ms < UINT64_MAX - DEADLINE_MORE ? timeout_ms + DEADLINE_MORE : UINT64_MAX;
}

static void started(struct exec *x)
{
	x->started = true;
	uv_timer_stop(&x->deadline);
	if (x->ask.timeout_ms > 0)
		uv_timer_start(&x->deadline, on_deadline, deadline_after(x->ask.timeout_ms), 0);
}

/* ---- frames from init ---- */

static void take_small(struct exec *x)
{
	struct frame f = { .type = (enum frame_type)x->head[0],
			   .payload = { (const uint8_t *)buf_str(&x->small), x->small.len } };
	struct err e = { 0 };
	uint32_t pid;

	switch (f.type) {
	case FRAME_STARTED:
		if (frame_u32(&f, &pid, &e) < 0)
			return finish(x, NULL, &e);
		started(x);
		return x->sink->started(x, pid);
	case FRAME_EXITED:
		if (exec_exit_decode(f.payload, &x->exit, &e) < 0)
			return finish(x, NULL, &e);
		if (x->exit.kind == EXEC_OOM || x->exit.kind == EXEC_LOST)
			return lost(x); /* not the guest's to say: the host looks for itself */
		return settle(x);
	case FRAME_ERROR:
		frame_error(&f, &e);
		e.fix[0] = '\0';             /* what to do is not the guest's to say */
		if (e.code == ERR_NOT_FOUND) /* not the sandbox: the command */
			err_fix(&e, "Give the full path, or use an image that has this command.");
		return finish(x, NULL, &e);
	default:
		err_set(&e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
		return finish(x, NULL, &e);
	}
}

static bool is_output(const struct exec *x)
{
	return x->head[0] == FRAME_STDOUT || x->head[0] == FRAME_STDERR;
}

/*
 * Whoever holds the guest's end may send anything, in any order. What is out of
 * order here is an answer without a head, or a deadline that never comes.
 */
static bool is_due(const struct exec *x)
{
	switch ((enum frame_type)x->head[0]) {
	case FRAME_STARTED:
		return !x->started;
	case FRAME_STDOUT:
	case FRAME_STDERR:
	case FRAME_EXITED:
		return x->started;
	default:
		return x->head[0] == FRAME_ERROR;
	}
}

/* The head of the next frame; returns how many bytes it took. */
static size_t take_head(struct exec *x, const uint8_t *data, size_t len)
{
	size_t want = FRAME_HEAD - x->head_have;
	size_t n = len < want ? len : want;

	memcpy(x->head + x->head_have, data, n);
	x->head_have += n;
	if (x->head_have < FRAME_HEAD)
		return n;
	x->left = (uint32_t)x->head[1] << 24 | (uint32_t)x->head[2] << 16 |
		  (uint32_t)x->head[3] << 8 | x->head[4];
	buf_clear(&x->small);
	return n;
}

static size_t take_payload(struct exec *x, uint8_t *data, size_t len)
{
	size_t n = len < x->left ? len : x->left;

	x->left -= (uint32_t)n;
	if (!is_output(x)) {
		buf_add(&x->small, data, n);
	} else if (n > 0) {
		if (x->sink->output(x, (enum frame_type)x->head[0], data, n) && x->reading) {
			x->reading = false;
			uv_read_stop((uv_stream_t *)&x->pipe);
		}
		x->offset[x->head[0] == FRAME_STDERR] += n;
	}
	return n;
}

/*
 * Output is passed on as it comes, in whatever pieces; it is never put together
 * again. In front of a piece there are always FRAME_HEAD bytes that were used:
 * its own head, or the room we leave at the start of the buffer.
 */
static void take_bytes(struct exec *x, uint8_t *data, size_t len)
{
	struct err e;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): on_read() holds it through all of this */
	while (len > 0 && !x->ended && x->exit.kind == EXEC_NONE) {
		size_t n = x->head_have < FRAME_HEAD ? take_head(x, data, len)
						     : take_payload(x, data, len);

		data += n;
		len -= n;
		if (x->head_have < FRAME_HEAD)
			continue;
		if (!is_due(x)) {
			err_set(&e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
			return finish(x, NULL, &e);
		}
		if (x->left > FRAME_PAYLOAD_MAX || (!is_output(x) && x->left > SMALL_MAX)) {
			err_set(&e, ERR_INTERNAL, "the sandbox's init sent too long a frame");
			return finish(x, NULL, &e);
		}
		if (x->left > 0)
			continue;
		x->head_have = 0;
		if (!is_output(x))
			take_small(x);
	}
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
	struct exec *x = handle->data;

	(void)size;
	*buf = uv_buf_init(x->reactor->read_buffer + FRAME_HEAD, REACTOR_READ_SIZE - FRAME_HEAD);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
	struct exec *x = stream->data;

	if (n > 0) {
		x->pending++; /* it must outlive this, however it ends */
		take_bytes(x, (uint8_t *)buf->base, (size_t)n);
		/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `pending` above holds it */
		(void)came_back_late(x);
	} else if (n < 0 && !x->ended && x->exit.kind == EXEC_NONE) {
		lost(x);
	}
}

void exec_resume(struct exec *x)
{
	if (x->ended || x->reading || !x->piped || x->exit.kind != EXEC_NONE)
		return;
	x->reading = uv_read_start((uv_stream_t *)&x->pipe, on_alloc, on_read) == 0;
}

/* ---- frames to init ---- */

struct sending {
	uv_write_t write;
	struct exec *x;
	char bytes[];
};

static void on_sent(uv_write_t *write, int status)
{
	struct sending *s = container_of(write, struct sending, write);

	(void)status;  /* a broken connection is seen by the reader */
	s->x->sends--; /* it is there until its pipe is closed, and that is after this */
	free(s);
}

void exec_send(struct exec *x, enum frame_type type, const void *data, size_t len)
{
	struct sending *s;
	uv_buf_t buf;

	if (x->ended || !x->piped)
		return;
	s = xcalloc(1, sizeof(*s) + FRAME_HEAD + len);
	s->x = x;
	frame_head((uint8_t *)s->bytes, type, len);
	if (len > 0)
		memcpy(s->bytes + FRAME_HEAD, data, len);
	buf = uv_buf_init(s->bytes, (unsigned)(FRAME_HEAD + len));
	if (uv_write(&s->write, (uv_stream_t *)&x->pipe, &buf, 1, on_sent) < 0)
		free(s);
	else
		x->sends++;
}

size_t exec_send_backlog(const struct exec *x)
{
	size_t bytes;

	if (!x->piped)
		return 0;
	bytes = uv_stream_get_write_queue_size((const uv_stream_t *)&x->pipe);
	return bytes + x->sends * sizeof(struct sending);
}

/* ---- the way there ---- */

static void run(struct exec *x, int fd)
{
	cleanup(buf_done) struct buf ask = buf_make(FRAME_PAYLOAD_MAX);
	uv_loop_t *loop = &x->reactor->loop;
	struct err e;

	uv_pipe_init(loop, &x->pipe, 0);
	x->pipe.data = x;
	x->piped = true;
	x->pending++;
	if (uv_pipe_open(&x->pipe, fd) < 0) {
		close_fd(&fd);
		err_set(&e, ERR_INTERNAL, "the connection to the sandbox cannot be used");
		return finish(x, NULL, &e);
	}
	uv_timer_init(loop, &x->deadline);
	x->deadline.data = x;
	x->timing = true;
	x->pending++;
	uv_timer_start(&x->deadline, on_deadline, START_MS, 0);
	exec_request_encode(&ask, &x->ask);
	exec_send(x, FRAME_EXEC, ask.data, ask.len);
	exec_resume(x);
}

static void on_way(void *data, struct init_way *way, const struct err *why)
{
	struct exec *x = data;

	if (came_back_late(x))
		return;
	if (why)
		return finish(x, NULL, why);
	memcpy(x->sandbox, way->sandbox, sizeof(x->sandbox));
	x->generation = way->generation;
	run(x, take_fd(way->fd));
}

struct exec *exec_begin(struct request *rq, const char *sandbox, struct exec_request *ask,
			const struct exec_sink *sink, void *data)
{
	struct exec *x = xcalloc(1, sizeof(*x));
	struct init_way_ask way = { rq->reactor, rq->id, request_owner(rq), sandbox };

	x->rq = rq;
	x->reactor = rq->reactor;
	memcpy(x->request, rq->id, sizeof(rq->id));
	x->sink = sink;
	x->data = data;
	x->ask = *ask;
	*ask = (struct exec_request){ 0 };
	x->small = buf_make(SMALL_MAX + 1);
	rq->data = x;
	x->pending = 2; /* the search, and until we are through here */
	init_way_find(&way, on_way, x);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `pending` above holds it until here */
	return came_back_late(x) ? NULL : x;
}

void exec_exit_json(struct buf *out, const struct exec *x, const struct exec_exit *exit)
{
	json_str(out, "kind", exec_kind_name(exit->kind));
	json_key(out, "exit_code");
	if (exit->kind == EXEC_EXITED)
		buf_addf(out, "%u", exit->code);
	else
		buf_adds(out, "null"); /* a missing exit code is never 0 */
	json_int(out, "signal", exit->signum);
	json_int(out, "stdout_bytes", (int64_t)x->offset[0]);
	json_int(out, "stderr_bytes", (int64_t)x->offset[1]);
	json_int(out, "wall_ms", (int64_t)(exit->wall_us / 1000));
	json_int(out, "user_ms", (int64_t)(exit->user_us / 1000));
	json_int(out, "system_ms", (int64_t)(exit->system_us / 1000));
	json_int(out, "max_rss_kb", (int64_t)exit->max_rss_kb);
}

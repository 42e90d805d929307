#include "berthd/exec/init-link.h"

#include <stdlib.h>

#include "berthd/exec/init-stream.h"
#include "lib/loop.h"

#define SEND_MARK  (1UL << 20) /* bytes on their way: then it is full */
#define LOOK_MS    5000
#define SILENCE_MS 60000 /* init says at least every few seconds that it still works */

struct init_link {
	struct reactor *reactor;
	const struct init_link_events *events;
	void *data;
	struct init_stream *stream; /* NULL: not there yet, or closed */
	uv_timer_t timer;
	bool timing, closed, expecting, full;
	int pending;          /* the owner, the search, and the timer's handle */
	uint64_t expected_ms; /* since when init owes an answer */
};

static void unref(struct init_link *l)
{
	if (--l->pending == 0)
		free(l);
}

static void on_closed(uv_handle_t *handle)
{
	unref(handle->data);
}

struct init_link *init_link_new(struct reactor *r, const struct init_link_events *events,
				void *data)
{
	struct init_link *l = xcalloc(1, sizeof(*l));

	l->reactor = r;
	l->events = events;
	l->data = data;
	l->pending = 1; /* the owner's */
	return l;
}

void init_link_close(struct init_link *l)
{
	if (!l || l->closed)
		return;
	l->closed = true;
	init_stream_close(take_ptr(l->stream));
	if (l->timing)
		uv_close((uv_handle_t *)&l->timer, on_closed);
	unref(l);
}

static void fail(struct init_link *l, const struct err *why)
{
	if (l->closed)
		return;
	l->events->failed(l->data, why);
	init_link_close(l);
}

static void fail_because(struct init_link *l, enum err_code code, const char *why)
{
	struct err e;

	err_set(&e, code, "%s", why);
	fail(l, &e);
}

/* ---- from init ---- */

static bool on_piece(void *data, enum frame_type type, uint8_t *bytes, size_t len)
{
	struct init_link *l = data;

	(void)type;
	return l->events->bytes(l->data, bytes, len);
}

static void on_frame(void *data, const struct frame *f)
{
	struct init_link *l = data;

	if (f->type != FRAME_TICK)
		l->events->frame(l->data, f);
}

static void on_gone(void *data, const struct err *why)
{
	if (why)
		fail(data, why);
	else
		fail_because(data, ERR_BUSY, "the sandbox ended before it gave an answer");
}

void init_link_resume(struct init_link *l)
{
	if (l->stream)
		init_stream_resume(l->stream);
}

void init_link_expect(struct init_link *l)
{
	l->expecting = true;
	l->expected_ms = uv_now(&l->reactor->loop);
}

static bool is_silent(const struct init_link *l)
{
	uint64_t moved = init_stream_moved_ms(l->stream);
	uint64_t since = moved > l->expected_ms ? moved : l->expected_ms;
	bool waiting = (l->expecting && !init_stream_is_paused(l->stream)) || l->full;

	return waiting && uv_now(&l->reactor->loop) - since > SILENCE_MS;
}

static void on_look(uv_timer_t *timer)
{
	struct init_link *l = timer->data;

	if (!l->closed && is_silent(l))
		fail_because(l, ERR_TIMEOUT, "the sandbox does not answer");
}

/* ---- to init ---- */

static void on_sent(void *data, bool broken)
{
	struct init_link *l = data;

	if (broken || !l->full || init_stream_backlog(l->stream) >= SEND_MARK)
		return; /* that it is broken is seen by the reader */
	l->full = false;
	if (l->events->drained)
		l->events->drained(l->data);
}

bool init_link_send(struct init_link *l, enum frame_type type, const void *data, size_t len)
{
	if (!l->stream)
		return false;
	init_stream_send(l->stream, type, data, len);
	l->full = init_stream_backlog(l->stream) >= SEND_MARK;
	return l->full;
}

/* ---- the way there ---- */

static const struct init_stream_events stream_events = {
	.pieces = FRAME_BIT(FRAME_DATA),
	.piece = on_piece,
	.frame = on_frame,
	.gone = on_gone,
	.sent = on_sent,
};

static void on_way(void *data, struct init_dial *way, const struct err *why)
{
	struct init_link *l = data;

	if (!l->closed && why)
		fail(l, why);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the search holds it until here */
	if (l->closed)
		return unref(l);
	uv_timer_init(&l->reactor->loop, &l->timer); /* in the place of the search, in `pending` */
	l->timer.data = l;
	l->timing = true;
	l->stream = init_stream_open(l->reactor, take_fd(way->fd), &stream_events, l);
	if (!l->stream)
		return fail_because(l, ERR_INTERNAL, "the connection to the sandbox is of no use");
	uv_timer_start(&l->timer, on_look, LOOK_MS, LOOK_MS);
	l->events->opened(l->data);
}

void init_link_open(struct init_link *l, const struct init_dial_ask *ask)
{
	l->pending++; /* the search */
	init_dial_find(ask, on_way, l);
}

#include "berthd/exec/wait.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/exec/init-link.h"
#include "berthd/journal/tail.h"
#include "lib/errno-map.h"
#include "lib/pattern.h"
#include "proto/writer.h"

struct wait {
	struct caller by;
	wait_fn done;
	void *data;
	struct tail *tail;
	struct init_link *port; /* for a port */
	uint32_t port_number;
	uv_timer_t timer;
	char text[WAIT_TEXT_MAX];    /* that is looked for; or an expression: */
	struct pattern *pattern;     /* NULL: it is none */
	struct pattern_look look[2]; /* in each stream */
	struct buf seen[2];          /* of each stream: what the text may still begin in */
};

static void wait_free(struct wait *w)
{
	buf_done(&w->seen[0]);
	buf_done(&w->seen[1]);
	free(w->pattern);
	free(w);
}

static void on_timer_closed(uv_handle_t *handle)
{
	wait_free(handle->data);
}

void wait_cancel(struct wait *w)
{
	init_link_close(take_ptr(w->port));
	tail_close(take_ptr(w->tail));
	uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

static void finish(struct wait *w, const struct wait_result *result, const struct err *why)
{
	wait_fn done = w->done;
	void *data = w->data;

	wait_cancel(w);
	done(data, result, why);
}

static void answer(struct wait *w, bool ready, enum wait_end end)
{
	struct journal *j = journal_ref(w->tail->journal);

	finish(w, &(struct wait_result){ ready, end, j }, NULL);
	journal_unref(j);
}

static void on_time_out(uv_timer_t *timer)
{
	answer(timer->data, false, WAIT_TIMED_OUT);
}

/* ---- what it says ---- */

/* Text may begin in what came before. */
static bool find_text(const struct wait *w, struct buf *seen, const uint8_t *data, size_t len)
{
	size_t n = strlen(w->text);

	buf_add(seen, data, len);
	if (memmem(seen->data, seen->len, w->text, n))
		return true;
	if (seen->len >= n)
		buf_drop(seen, seen->len - (n - 1));
	return false;
}

static bool find(struct wait *w, int stream, const uint8_t *data, size_t len)
{
	if (w->pattern)
		return pattern_find(w->pattern, &w->look[stream], data, len);
	return w->text[0] && find_text(w, &w->seen[stream], data, len);
}

static bool find_at_end(struct wait *w)
{
	return w->pattern && (pattern_find_end(w->pattern, &w->look[0]) ||
			      pattern_find_end(w->pattern, &w->look[1]));
}

static bool on_output(struct tail *t, enum frame_type type, uint8_t *data, size_t len)
{
	struct wait *w = t->data;

	if (!find(w, type == FRAME_STDERR, data, len))
		return false;
	answer(w, true, WAIT_SAID);
	return true;
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct wait *w = t->data;

	(void)exit;
	if (why) /* it was never begun */
		return finish(w, NULL, why);
	if (find_at_end(w))
		return answer(w, true, WAIT_SAID);
	answer(w, !w->text[0] && !w->port, WAIT_ENDED);
}

static const struct tail_events events = { .output = on_output, .finished = on_finished };

/* ---- a port ---- */

static void on_port_opened(void *data)
{
	struct wait *w = data;
	cleanup(buf_done) struct buf out = buf_make(64);

	writer_u32(&out, w->port_number);
	(void)init_link_send(w->port, FRAME_PORT, out.data, out.len);
}

static void on_port_frame(void *data, const struct frame *f)
{
	struct wait *w = data;
	struct err e;

	if (f->type == FRAME_PORT)
		return answer(w, true, WAIT_LISTENS);
	err_set(&e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
	if (f->type == FRAME_ERROR)
		frame_guest_error(f, &e);
	finish(w, NULL, &e);
}

static bool on_port_bytes(void *data, const uint8_t *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return false;
}

/* Whether the port is listened on cannot be known; the exec may go on. */
static void on_port_failed(void *data, const struct err *why)
{
	struct wait *w = data;

	w->port = NULL;
	finish(w, NULL, why);
}

static const struct init_link_events port_events = { on_port_opened, on_port_frame, on_port_bytes,
						     NULL, on_port_failed };

static void ask_port(struct wait *w, uint64_t port)
{
	const char *sandbox = w->tail->journal->head.sandbox;
	struct init_dial_ask way = { w->by.reactor, w->by.request, NULL, sandbox, true };

	w->port_number = (uint32_t)port;
	w->port = init_link_new(w->by.reactor, &port_events, w);
	init_link_open(w->port, &way);
}

/* ---- what is asked ---- */

/* A text, or an expression between slashes. */
static int read_text(struct wait *w, const char *text, struct err *e)
{
	size_t len = strlen(text);
	bool fold = len > 3 && strcmp(text + len - 2, "/i") == 0;
	size_t end = len - (fold ? 2 : 1);

	if (len == 0)
		return err_set(e, ERR_INVALID, "for=log needs a pattern");
	memcpy(w->text, text, len + 1);
	if (len < 3 || text[0] != '/' || text[end] != '/')
		return 0;
	w->text[end] = '\0';
	w->pattern = xcalloc(1, sizeof(*w->pattern));
	return pattern_read(w->text + 1, fold, w->pattern, e);
}

static int bad_port(struct err *e)
{
	err_set(e, ERR_INVALID, "for=port needs a port from 1 to 65535");
	return err_reason(e, REASON_INVALID_PORT, 0);
}

static int wait_check(const struct wait_ask *ask, struct err *e)
{
	if (ask->timeout_ms > WAIT_MAX_MS)
		return err_set(e, ERR_INVALID, "timeout_ms must be 0 to %d", WAIT_MAX_MS);
	if (ask->what == WAIT_FOR_PORT && (ask->port < 1 || ask->port > 65535))
		return bad_port(e);
	if (ask->what == WAIT_FOR_LOG && strlen(ask->text) >= WAIT_TEXT_MAX)
		return err_set(e, ERR_INVALID, "the pattern is longer than %d bytes",
			       WAIT_TEXT_MAX - 1);
	return 0;
}

int wait_begin(const struct wait_ask *ask, wait_fn done, void *data, void **held, struct err *e)
{
	struct wait *w = xcalloc(1, sizeof(*w));

	if (wait_check(ask, e) < 0 ||
	    (ask->what == WAIT_FOR_LOG && read_text(w, ask->text, e) < 0)) {
		wait_free(w);
		return -1;
	}
	w->by = ask->by;
	w->done = done;
	w->data = data;
	w->seen[0] = buf_make(FRAME_PAYLOAD_MAX + WAIT_TEXT_MAX);
	w->seen[1] = buf_make(FRAME_PAYLOAD_MAX + WAIT_TEXT_MAX);
	uv_timer_init(&w->by.reactor->loop, &w->timer);
	w->timer.data = w;
	uv_timer_start(&w->timer, on_time_out, ask->timeout_ms, 0);
	w->tail = tail_new(w->by.reactor, &events, w);
	*held = w;
	tail_follow(w->tail, ask->journal, w->text[0] ? 0 : UINT64_MAX);
	if (ask->what == WAIT_FOR_PORT)
		ask_port(w, ask->port);
	return 0;
}

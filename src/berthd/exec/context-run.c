#include "berthd/exec/context-run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/exec/code-end.h"
#include "berthd/exec/code-notes.h"
#include "berthd/exec/init-dial.h"
#include "berthd/exec/init-stream.h"
#include "berthd/exec/running-set.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/str.h"

#define WAIT_MORE_MS 30000   /* for its turn, over what it may run for */
#define WAIT_MAX_MS  3600000 /* for its turn, if it may run for ever */
#define END_MORE_MS  20000   /* for init to interrupt, kill and say so */
#define REQUEST_MAX  (8 * 1024 * 1024)

void code_ask_done(struct code_ask *ask)
{
	free(take_ptr(ask->code));
	strv_done(&ask->env);
}

/* ---- how long it lives ---- */

static void run_free(struct code_run *r)
{
	if (r->beside)
		sandbox_cache_beside(r->reactor->berthd->sandboxes, r->sandbox, -1);
	code_ask_done(&r->ask);
	buf_done(&r->line);
	buf_done(&r->error);
	close_fd(&r->fd);
	free(r);
}

static void let_go(struct code_run *r)
{
	if (--r->pending == 0 && r->phase == CODE_CLOSED)
		run_free(r);
}

static void move(struct code_run *r, enum code_phase to)
{
	(void)!phase_move(&code_phases, &r->phase, to); /* no step could be undone */
}

/* Its end is known, as far as init knows it. */
static bool is_over(const struct code_run *r)
{
	return r->phase >= CODE_SETTLING;
}

/* A call came back. True if the run has ended and waits for it no more. */
static bool came_back_late(struct code_run *r)
{
	bool late = r->phase == CODE_CLOSED;

	let_go(r);
	return late;
}

static void on_handle_closed(uv_handle_t *handle)
{
	let_go(handle->data);
}

static void run_close(struct code_run *r)
{
	move(r, CODE_CLOSED);
	if (r->listed)
		running_set_drop(r->reactor->berthd->running, r->context.id);
	init_stream_close(take_ptr(r->stream));
	if (r->timing)
		uv_close((uv_handle_t *)&r->deadline, on_handle_closed);
}

static void finish(struct code_run *r, const struct err *why)
{
	if (r->phase == CODE_CLOSED)
		return;
	r->pending++; /* the call that came back last has let go of it already */
	run_close(r);
	r->sink->finished(r, why);
	let_go(r);
}

void code_cancel(struct code_run *r)
{
	if (r->phase != CODE_CLOSED)
		run_close(r); /* init sees the connection close and interrupts the run */
}

/* ---- its end ---- */

static void end(struct code_run *r)
{
	if (r->recording)
		return; /* it comes back here */
	if (r->ask.verb == CONTEXT_RUN)
		code_judge(r);
	finish(r, NULL);
}

static void on_usage(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct code_run *r = data;

	(void)fd;
	if (came_back_late(r))
		return;
	if (!why && record->usage.oom_kills > r->oom_kills &&
	    sandbox_cache_oom(r->reactor->berthd->sandboxes, r->sandbox,
			      record->usage.oom_kills - r->oom_kills, r->oom_told))
		r->exit.kind = EXEC_OOM;
	move(r, CODE_ENDING);
	end(r);
}

static const struct node_call_events usage_events = { .on_done = on_usage };

/* Killed by a process we do not know, or gone without a word: was it the kernel, for memory? */
static void settle(struct code_run *r)
{
	struct node_target t = { .generation = r->generation };
	bool doubt = r->exit.kind == EXEC_LOST ||
		     (r->exit.kind == EXEC_SIGNALLED && r->exit.signum == SIGKILL);

	move(r, CODE_SETTLING);
	init_stream_pause(r->stream);
	if (!doubt) {
		move(r, CODE_ENDING);
		return end(r);
	}
	memcpy(t.request, r->request, sizeof(t.request));
	memcpy(t.sandbox, r->sandbox, sizeof(r->sandbox));
	r->pending++;
	node_call(&r->reactor->node, NODE_USAGE, &t, -1, &usage_events, r);
}

static void lost(struct code_run *r)
{
	r->exit = (struct exec_exit){ .kind = EXEC_LOST };
	settle(r);
}

static void on_deadline(uv_timer_t *timer)
{
	struct code_run *r = timer->data;
	struct err e;

	if (is_over(r))
		return;
	if (r->phase == CODE_RUNNING || r->ask.verb == CONTEXT_END)
		return lost(r);
	err_set(&e, ERR_BUSY, "the context %s did not become free in time", r->context.id);
	err_fix(&e, "Wait for its other runs, or use another context.");
	finish(r, &e);
}

/* ---- the record ---- */

static int record_run(struct job *job, struct store *s, struct err *e)
{
	struct code_run *r = container_of(job, struct code_run, job);
	struct context_record now;

	if (store_context_ran(s, r->context.id, r->fresh, &now, e) < 0)
		return -1;
	r->restarted = r->fresh && now.started;
	return 0;
}

static void on_recorded(struct job *job)
{
	struct code_run *r = container_of(job, struct code_run, job);

	r->recording = false;
	if (job->failed)
		log_event(LOG_WARN, "code run could not be recorded", "context", r->context.id,
			  "why", job->e.msg, NULL);
	if (!came_back_late(r) && r->phase == CODE_ENDING)
		end(r);
}

static void begin_record(struct code_run *r)
{
	r->fresh = r->run.fresh;
	r->restarted = r->fresh && r->context.started;
	r->recording = true;
	r->pending++;
	job_submit(r->reactor, r->owner, &r->job, record_run, on_recorded);
}

/* ---- what comes from init ---- */

static void send_frame(struct code_run *r, enum frame_type type, const void *data, size_t len)
{
	if (r->stream)
		init_stream_send(r->stream, type, data, len);
}

/* The run itself, as the runner reads it. */
static void send_code(struct code_run *r)
{
	cleanup(buf_done) struct buf line = buf_make(REQUEST_MAX);

	json_open(&line, '{');
	json_str(&line, "code", r->ask.code);
	json_key(&line, "env");
	json_open(&line, '{');
	for (size_t i = 0; i < r->ask.env.len; i++) {
		const char *var = r->ask.env.items[i];
		size_t name = strcspn(var, "=");

		if (i > 0)
			buf_adds(&line, ",");
		json_add_text(&line, var, name);
		buf_adds(&line, ":");
		json_add_string(&line, var + name + 1);
	}
	buf_adds(&line, "}}\n");
	for (size_t at = 0; at < line.len; at += FRAME_PAYLOAD_MAX)
		send_frame(r, FRAME_STDIN, line.data + at,
			   line.len - at < FRAME_PAYLOAD_MAX ? line.len - at : FRAME_PAYLOAD_MAX);
	send_frame(r, FRAME_STDIN_END, NULL, 0);
}

static uint64_t timeout_of(const struct code_run *r)
{
	return r->ask.timeout_ms >= 0 ? (uint64_t)r->ask.timeout_ms : r->context.timeout_ms;
}

static void on_started(struct code_run *r)
{
	uint64_t timeout = timeout_of(r);

	move(r, CODE_RUNNING);
	r->listed = true;
	running_set_add(r->reactor->berthd->running, r->context.id);
	uv_timer_stop(&r->deadline);
	if (timeout > 0)
		uv_timer_start(&r->deadline, on_deadline, timeout + END_MORE_MS, 0);
	begin_record(r);
	r->sink->started(r);
	send_code(r);
}

static int unexpected(struct err *e)
{
	return err_set(e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
}

static int take_run(struct code_run *r, const struct frame *f, struct err *e)
{
	if (r->ask.verb != CONTEXT_RUN)
		return err_set(e, ERR_INTERNAL, "the sandbox's init runs what was not asked for");
	if (context_run_decode(f->payload, &r->run, e) < 0)
		return -1;
	if (r->phase == CODE_WAITING)
		on_started(r);
	return 0;
}

static int take_exit(struct code_run *r, const struct frame *f, struct err *e)
{
	if (exec_exit_decode(f->payload, &r->exit, e) < 0)
		return -1;
	if (r->exit.kind == EXEC_OOM || r->exit.kind == EXEC_LOST)
		r->exit.kind = EXEC_LOST; /* not the guest's to say: the host looks for itself */
	settle(r);
	return 0;
}

static int take_frame(struct code_run *r, const struct frame *f, struct err *e)
{
	switch (f->type) {
	case FRAME_STARTED:
		return 0;
	case FRAME_RUN:
		return take_run(r, f, e);
	case FRAME_EXITED:
		if (r->phase == CODE_RUNNING || r->ask.verb == CONTEXT_END)
			return take_exit(r, f, e);
		break;
	case FRAME_ERROR:
		frame_guest_error(f, e);
		if (e->code == ERR_UNSUPPORTED)
			err_fix(e, "Use an image with python3 or node on its PATH.");
		return -1;
	default:
		break;
	}
	return unexpected(e);
}

static void on_frame(void *data, const struct frame *f)
{
	struct code_run *r = data;
	struct err e;

	if (!is_over(r) && take_frame(r, f, &e) < 0)
		finish(r, &e);
}

static bool on_piece(void *data, enum frame_type type, uint8_t *bytes, size_t len)
{
	struct code_run *r = data;
	struct err e;
	bool full;

	if (is_over(r))
		return false;
	if (r->phase != CODE_RUNNING) {
		(void)unexpected(&e);
		finish(r, &e);
		return false;
	}
	if (type == FRAME_NOTE)
		return code_notes_take(r, bytes, len);
	full = r->sink->output(r, type, bytes, len);
	r->offset[type == FRAME_STDERR] += len;
	return full;
}

static void on_gone(void *data, const struct err *why)
{
	struct code_run *r = data;

	if (is_over(r))
		return;
	if (why)
		finish(r, why);
	else
		lost(r);
}

static const struct init_stream_events stream_events = {
	.pieces = FRAME_BIT(FRAME_STDOUT) | FRAME_BIT(FRAME_STDERR) | FRAME_BIT(FRAME_NOTE),
	.piece = on_piece,
	.frame = on_frame,
	.gone = on_gone,
};

void code_resume(struct code_run *r)
{
	if (!is_over(r) && r->stream)
		init_stream_resume(r->stream);
}

/* ---- what goes to init ---- */

/* {"NAME": "value"} of the record, as a list. */
static int read_env(const char *text, struct strv *ret, struct err *e)
{
	cleanup(buf_done) struct buf wrapped = buf_make(CONTEXT_ENV_SIZE + 16);
	struct wrapper {
		struct strv env;
	} w = { 0 };
	const struct json_field fields[] = { JSON_FIELD_MAP(wrapper, env), JSON_FIELD_END };

	buf_addf(&wrapped, "{\"env\":%s}", text);
	if (json_read(buf_str(&wrapped), wrapped.len, fields, &w, e) < 0) {
		strv_done(&w.env);
		return err_wrap(e, "the environment on record");
	}
	*ret = w.env;
	return 0;
}

static int send_ask(struct code_run *r, struct err *e)
{
	cleanup(context_request_done) struct context_request q = { .verb = r->ask.verb };
	cleanup(buf_done) struct buf wire = buf_make(FRAME_PAYLOAD_MAX);

	q.language = context_language_by_name(r->context.language);
	q.timeout_ms = timeout_of(r);
	memcpy(q.id, r->context.id, sizeof(q.id));
	memcpy(q.cwd, r->context.cwd, sizeof(q.cwd));
	if (read_env(r->context.env, &q.env, e) < 0)
		return -1;
	context_request_encode(&wire, &q);
	if (buf_overflowed(&wire))
		return err_set(e, ERR_TOO_LARGE, "the context's environment is too long");
	send_frame(r, FRAME_CONTEXT, wire.data, wire.len);
	return 0;
}

static uint64_t turn_by(const struct code_run *r)
{
	uint64_t timeout = timeout_of(r);

	return timeout > 0 ? timeout + WAIT_MORE_MS : WAIT_MAX_MS;
}

static void talk(struct code_run *r)
{
	struct err e;

	move(r, CODE_WAITING);
	uv_timer_init(&r->reactor->loop, &r->deadline);
	r->deadline.data = r;
	r->timing = true;
	r->pending++;
	r->stream = init_stream_open(r->reactor, take_fd(r->fd), &stream_events, r);
	if (!r->stream) {
		err_set(&e, ERR_INTERNAL, "the connection to the sandbox cannot be used");
		return finish(r, &e);
	}
	uv_timer_start(&r->deadline, on_deadline, turn_by(r), 0);
	if (send_ask(r, &e) < 0)
		return finish(r, &e);
}

/* ---- the context ---- */

static int default_context(struct code_run *r, struct store *s, struct err *e)
{
	struct context_record c = { .timeout_ms = CODE_TIMEOUT_DEFAULT_MS };
	const char *language = context_language_name(r->ask.language);
	char random[ID_RANDOM_CHARS + 1];
	struct err ignored;

	snprintf(c.name, sizeof(c.name), "default-%s", language);
	if (store_context_get(s, r->sandbox, c.name, &r->context, &ignored) == 0)
		return 0;
	id_random(random, ID_RANDOM_CHARS);
	snprintf(c.id, sizeof(c.id), "cx_%s", random);
	memcpy(c.sandbox, r->sandbox, sizeof(c.sandbox));
	snprintf(c.language, sizeof(c.language), "%s", language);
	snprintf(c.env, sizeof(c.env), "{}");
	if (store_context_insert(s, &c, &r->context, e) < 0)
		return -1;
	crash_point("context.default-recorded");
	return 0;
}

static int find_context(struct job *job, struct store *s, struct err *e)
{
	struct code_run *r = container_of(job, struct code_run, job);
	enum context_language want = r->ask.language;

	if (!r->ask.context[0]) {
		if (want == CONTEXT_UNSET)
			r->ask.language = CONTEXT_PYTHON;
		return default_context(r, s, e);
	}
	if (store_context_get(s, r->sandbox, r->ask.context, &r->context, e) < 0)
		return -1;
	if (want != CONTEXT_UNSET && want != context_language_by_name(r->context.language))
		return err_set(e, ERR_CONFLICT, "the context %s is for %s", r->context.id,
			       r->context.language);
	return 0;
}

static void on_context(struct job *job)
{
	struct code_run *r = container_of(job, struct code_run, job);
	struct err e = job->e;
	bool failed = job->failed;

	if (came_back_late(r))
		return;
	if (failed)
		return finish(r, &e);
	talk(r);
}

static void on_way(void *data, struct init_dial *way, const struct err *why)
{
	struct code_run *r = data;

	if (came_back_late(r))
		return;
	if (why)
		return finish(r, why);
	r->fd = take_fd(way->fd);
	memcpy(r->sandbox, way->sandbox, sizeof(r->sandbox));
	memcpy(r->owner, way->owner, sizeof(r->owner));
	r->generation = way->generation;
	r->oom_kills = way->before.oom_kills;
	r->oom_told = sandbox_cache_oom_told(r->reactor->berthd->sandboxes, r->sandbox);
	r->beside = true;
	sandbox_cache_beside(r->reactor->berthd->sandboxes, r->sandbox, 1);
	if (r->ask.verb == CONTEXT_END)
		return talk(r);
	move(r, CODE_FINDING);
	r->pending++;
	job_submit(r->reactor, r->owner, &r->job, find_context, on_context);
}

void code_run_begin(const struct code_begin *b)
{
	struct code_run *r = xcalloc(1, sizeof(*r));
	struct init_dial_ask way = { b->by->reactor, r->request, b->by->owner, b->sandbox };

	r->rq = b->rq;
	(void)!str_copy(r->request, sizeof(r->request), b->by->request);
	r->reactor = b->by->reactor;
	r->sink = b->sink;
	r->data = b->data;
	r->fd = -1;
	r->ask = *b->ask;
	*b->ask = (struct code_ask){ 0 };
	if (r->ask.verb == CONTEXT_END)
		r->context = *b->context;
	r->line = buf_make(NOTE_MAX + 1);
	r->error = buf_make((size_t)NOTE_MAX * 2);
	*b->held = r;
	r->pending = 2; /* the search, and until we are through here */
	init_dial_find(&way, on_way, r);
	let_go(r);
}

#include "berthd/exec/exec.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/control/pool-level.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/exec/hold.h"
#include "berthd/exec/init-dial.h"
#include "berthd/exec/oom.h"
#include "berthd/exec/signals.h"
#include "berthd/exec/usage.h"
#include "berthd/netpolicy/policy-sync.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/time.h"

#define START_MS      30000 /* for init to start the command, or say why not */
#define DEADLINE_MORE 15000 /* for init to kill a tree and say so */
#define LEAVE_MS      10000 /* for our last word to init to go out */
#define USAGE_MS      10000 /* for berth-node to say what it used */
#define RETRY_FIRST   20    /* ms until the next attempt to reach it again, doubling */
#define RETRY_LAST    2000
#define ACK_STEP      (128 * 1024) /* of output; init keeps several times as much */

static void exec_free(struct exec *x)
{
	if (x->busy)
		sandbox_cache_busy(x->reactor->berthd->sandboxes, x->sandbox, time_mono_ms(), -1);
	journal_head_done(&x->head);
	exec_request_done(&x->waiting);
	close_fd(&x->way_fd);
	journal_unref(x->journal);
	free(x->refusal);
	free(x);
}

/* Here, because a handle's end is told by the loop: never from within exec_begin(). */
static void tell_refusal(struct exec *x)
{
	struct tail *client = take_ptr(x->client);

	if (!client)
		return;
	client->exec = NULL;
	client->events->finished(client, NULL, x->refusal);
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct exec *x = handle->data;

	if (x->refusal)
		tell_refusal(x);
	if (--x->pending == 0)
		exec_free(x);
}

bool exec_came_back(struct exec *x)
{
	bool late = x->phase == EXEC_CLOSED;

	if (--x->pending == 0 && late)
		exec_free(x);
	return late;
}

/* Its memory goes with the last of what is pending, and nowhere else. */
void exec_close(struct exec *x)
{
	if (x->journal) {
		pthread_mutex_lock(&x->journal->lock);
		x->journal->exec = NULL;
		pthread_mutex_unlock(&x->journal->lock);
	}
	exec_move(x, EXEC_CLOSED);
	mailbox_look(x);
	init_stream_close(take_ptr(x->stream));
	uv_close((uv_handle_t *)&x->deadline, on_handle_closed);
	uv_close((uv_handle_t *)&x->retry, on_handle_closed);
	uv_close((uv_handle_t *)&x->watch, on_handle_closed);
}

struct exec *exec_new(struct reactor *r)
{
	struct exec *x = xcalloc(1, sizeof(*x));

	x->reactor = r;
	x->signals_last = &x->signals;
	x->retry_ms = RETRY_FIRST;
	x->way_fd = -1;
	uv_timer_init(&r->loop, &x->deadline);
	uv_timer_init(&r->loop, &x->retry);
	uv_timer_init(&r->loop, &x->watch);
	x->deadline.data = x->retry.data = x->watch.data = x;
	x->limits = limits_usual();
	x->pending = 3;
	return x;
}

/* ---- the end ---- */

void exec_refuse(struct exec *x, const struct err *why)
{
	x->refusal = xcalloc(1, sizeof(*x->refusal));
	if (why)
		*x->refusal = *why;
	else
		err_set(x->refusal, ERR_CONFLICT, "the client left before the command was begun");
	exec_signals_back(x, SIZE_MAX, x->refusal);
	if (x->journal) {
		journal_refuse(x->journal, x->refusal);
		tails_wake(x->journal);
	}
	exec_close(x);
}

/* init does not have to be told any more. */
static void leave(struct exec *x)
{
	journal_settle(x->journal);
	crash_point("exec.settled");
	exec_close(x);
}

static void on_leave_late(uv_timer_t *timer)
{
	exec_close(timer->data); /* the next berthd tells init again */
}

static void reach_again(struct exec *x);

/* Tell init that the record stands. What has not ended, as far as it knows, ends now. */
static void take_leave(struct exec *x)
{
	cleanup(buf_done) struct buf out = buf_make(64);
	struct exec_ack ack = { .ended = true };
	struct journal_view v;

	if (x->gone)
		return leave(x);
	if (!x->stream || x->unanswered)
		return reach_again(x);
	journal_look(x->journal, &v);
	memcpy(ack.offset, v.slot.offset, sizeof(ack.offset));
	exec_ack_encode(&out, &ack);
	exec_move(x, EXEC_LEAVING);
	init_stream_send(x->stream, FRAME_ACK, out.data, out.len);
	if (init_stream_backlog(x->stream) == 0)
		return leave(x);
	uv_timer_start(&x->deadline, on_leave_late, LEAVE_MS, 0);
}

static void finish(struct exec *x);

static void on_finish_again(uv_timer_t *timer)
{
	finish(timer->data);
}

/* No client hears an end that a restart would take back; init keeps it until it is written. */
static void finish_later(struct exec *x, const struct err *why)
{
	if (!x->unwritten)
		log_event(LOG_ERROR, "an exec's end is not recorded yet", "exec",
			  x->journal->head.ask.id, "sandbox", x->sandbox, "why", why->msg, NULL);
	x->unwritten = true;
	uv_timer_start(&x->retry, on_finish_again, RETRY_LAST, 0);
}

static void finish(struct exec *x)
{
	struct tail *client;
	struct err e;

	if (journal_end(x->journal, &x->exit, &x->use, x->absent, &e) < 0)
		return finish_later(x, &e);
	client = take_ptr(x->client);
	crash_point("exec.ended");
	exec_signals_back(x, SIZE_MAX, NULL); /* it is over: nothing is left to be done to it */
	if (client)
		tail_leave(client);
	tails_wake(x->journal);
	exec_move(x, EXEC_TELLING);
	take_leave(x);
}

static void record_end(struct exec *x)
{
	exec_move(x, EXEC_RECORDING);
	uv_timer_stop(&x->deadline);
	exec_usage_requests(x);
	finish(x);
}

static void on_count_late(uv_timer_t *timer)
{
	record_end(timer->data);
}

static void on_counted(void *data, const struct egress_count *count)
{
	struct exec *x = data;

	if (exec_came_back(x) || x->phase != EXEC_MEASURING)
		return;
	x->counting = false;
	x->requests_after = *count;
	if (x->measured)
		record_end(x);
}

static void on_usage(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct exec *x = data;

	(void)fd;
	if (exec_came_back(x) || x->phase != EXEC_MEASURING)
		return;
	exec_oom_judge(x, why ? NULL : &record->usage);
	if (!why)
		exec_usage_end(x, &record->usage);
	x->measured = true;
	if (x->counting)
		uv_timer_start(&x->deadline, on_count_late, EXEC_COUNT_MS, 0);
	else
		record_end(x);
}

static const struct node_call_events usage_events = { .on_done = on_usage };

static void on_init_looked_for(void *data, const union node_any *record, int *fd,
			       const struct err *why)
{
	struct exec *x = data;

	(void)fd;
	if (exec_came_back(x) || x->phase != EXEC_MEASURING)
		return;
	if (!why)
		x->memory = (enum presence)record->killer.memory;
	exec_ask_usage(x, &usage_events);
}

static const struct node_call_events init_events = { .on_done = on_init_looked_for };

static void on_usage_late(uv_timer_t *timer)
{
	struct exec *x = timer->data;

	exec_oom_judge(x, NULL);
	record_end(x);
}

bool exec_ask_requests(struct exec *x, egress_count_fn *done)
{
	struct egress_ask ask = { .generation = x->generation };

	memcpy(ask.sandbox, x->sandbox, sizeof(x->sandbox));
	x->counting = egress_ask(x->reactor->berthd->egress, &ask, x->reactor, done, x);
	x->pending += x->counting;
	x->counted = x->counting ? ask.generation : 0;
	return x->counting;
}

void exec_ask_usage(struct exec *x, const struct node_call_events *events)
{
	struct node_target t = { .generation = x->generation };

	x->pending++;
	x->disk_at_ms = pool_level_synced_at(x->reactor->berthd); /* before it counts */
	memcpy(t.request, x->request, sizeof(t.request));
	memcpy(t.sandbox, x->sandbox, sizeof(t.sandbox));
	node_call(&x->reactor->node, NODE_USAGE, &t, -1, events, x);
}

static void settle(struct exec *x)
{
	exec_move(x, EXEC_MEASURING);
	uv_timer_stop(&x->retry);
	uv_timer_stop(&x->watch);
	mailbox_look(x);
	if (x->stream)
		init_stream_pause(x->stream);
	uv_timer_start(&x->deadline, on_usage_late, USAGE_MS, 0);
	if (x->requests_before.since_ns)
		(void)exec_ask_requests(x, on_counted);
	if (!exec_oom_ask_lost(x, &init_events))
		exec_ask_usage(x, &usage_events);
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

	if (!exec_is_over(x))
		lost(x);
}

static void set_deadline(struct exec *x)
{
	const struct journal_head *h = &x->journal->head;
	uint64_t limit = h->ask.timeout_ms, now = time_boot_ms(), run;

	uv_timer_stop(&x->deadline);
	if (limit == 0 || limit > UINT64_MAX / 2)
		return;
	run = now > h->started_boot_ms ? now - h->started_boot_ms : 0; /* it may be long ago */
	limit = limit > run ? limit - run : 0;
	uv_timer_start(&x->deadline, on_deadline, limit + DEADLINE_MORE, 0);
}

/* ---- to init ---- */

void exec_send(struct exec *x, enum frame_type type, const void *data, size_t len)
{
	if (x->phase != EXEC_RUNNING)
		return;
	if (type == FRAME_STDIN && x->input_ended)
		return; /* an init of before hangs up on it */
	if (type == FRAME_STDIN)
		x->stdin_out += len;
	if (type == FRAME_STDIN_END && !(x->journal->head.ask.flags & EXEC_PTY))
		x->input_ended = true;
	init_stream_send(x->stream, type, data, len);
}

size_t exec_send_backlog(const struct exec *x)
{
	return x->stream ? init_stream_backlog(x->stream) + x->stdin_out : 0;
}

static void acknowledge(struct exec *x)
{
	cleanup(buf_done) struct buf out = buf_make(64);
	struct exec_ack ack = { 0 };
	const struct journal_slot *slot = &x->journal->slot; /* only we change it */
	uint64_t end = slot->offset[0] + slot->offset[1];
	struct err ignored;

	if (end - x->acked < ACK_STEP || !x->stream || journal_save(x->journal, &ignored) < 0)
		return;
	memcpy(ack.offset, slot->offset, sizeof(ack.offset));
	exec_ack_encode(&out, &ack);
	init_stream_send(x->stream, FRAME_ACK, out.data, out.len);
	x->acked = end;
}

/* ---- from init ---- */

static void exec_resume(struct exec *x)
{
	if (!x->paused)
		return;
	x->paused = false;
	if (x->stream && !exec_is_over(x))
		init_stream_resume(x->stream);
}

void exec_caught_up(struct exec *x)
{
	exec_resume(x);
}

static void on_others_read(struct exec *x)
{
	if (x->paused && !journal_is_full(x->journal))
		exec_resume(x);
}

/*
 * A client that does not keep up reads from the journal at its own pace. The
 * command waits for it only if it is alone, or past the cap, where nothing can be
 * read again.
 */
static void hold_back(struct exec *x)
{
	if (!x->keep && atomic_load(&x->journal->readers) == 0)
		tail_watch_readers(x->client, on_others_read);
	else if (!journal_is_full(x->journal))
		return;
	x->paused = true;
	if (x->stream)
		init_stream_pause(x->stream);
}

/*
 * Past the cap nothing can be read again: the client is handed it even if it is
 * full. That is no more than we have read already; then we wait for it.
 */
static bool can_hand(struct exec *x, uint64_t position)
{
	return x->client && tail_is_at(x->client, position) &&
	       (!x->client->full || journal_is_full(x->journal));
}

static void take_output(struct exec *x, int stream, uint8_t *bytes, size_t len)
{
	const struct journal_slot *slot = &x->journal->slot; /* only we change it */
	bool hand, late, recorded;

	hand = can_hand(x, slot->offset[0] + slot->offset[1]);
	late = x->client && !hand;
	recorded = journal_append(x->journal, stream, bytes, len, late);
	if (hand)
		tail_hand(x->client, stream, bytes, len, recorded);
	tails_wake(x->journal);
	acknowledge(x);
	if (late && !recorded)
		return; /* the disk is full: for the client, too, this is a gap */
	if (x->client && (late || x->client->full) && !x->paused)
		hold_back(x);
}

static bool on_output(void *data, enum frame_type type, uint8_t *bytes, size_t len)
{
	struct exec *x = data;

	if (x->phase == EXEC_RUNNING)
		take_output(x, type == FRAME_STDERR, bytes, len);
	return false; /* hold_back() does that */
}

static void on_started(struct exec *x, uint32_t pid)
{
	bool first = x->journal->slot.pid == 0;

	exec_move(x, EXEC_RUNNING);
	x->unanswered = false;
	x->retry_ms = RETRY_FIRST;
	pthread_mutex_lock(&x->journal->lock);
	x->journal->slot.pid = pid;
	pthread_mutex_unlock(&x->journal->lock);
	set_deadline(x);
	exec_usage_watch(x);
	exec_signals_send(x);
	if (first && x->client)
		tail_start(x->client, pid);
	tails_wake(x->journal);
	mailbox_look(x);
}

/* init did not like what it heard, and that says nothing about the command: ask for it. */
static void not_its_end(struct exec *x, const struct err *why)
{
	log_event(LOG_WARN, "init refused a frame of a running exec", "sandbox", x->sandbox, "exec",
		  x->journal->head.ask.id, "why", why->msg, NULL);
	x->retry_ms = RETRY_LAST; /* it may say so again and again */
	reach_again(x);
}

static void on_init_error(struct exec *x, const struct frame *f)
{
	struct err e = { 0 };

	frame_guest_error(f, &e);
	if (x->phase == EXEC_RUNNING)
		return not_its_end(x, &e);
	if (x->phase == EXEC_REACHING && (e.code == ERR_BUSY || e.code == ERR_LIMIT))
		return reach_again(x);
	if (x->phase == EXEC_REACHING) {
		x->gone = true;
		/*
		 * No process of init runs it: none ever did, or it saw the end. Unless it
		 * was killed in doing so.
		 */
		x->absent = e.code == ERR_NOT_FOUND;
		return lost(x);
	}
	if (e.code == ERR_NOT_FOUND) /* not the sandbox: the command */
		err_fix(&e, "Give the full path, or use an image that has this command; for a "
			    "line of shell: sh -c '...'.");
	exec_refuse(x, &e);
}

static void nonsense(struct exec *x, const struct err *why)
{
	log_event(LOG_WARN, "init protocol error", "sandbox", x->sandbox, "exec",
		  x->journal->head.ask.id, "why", why->msg, NULL);
	lost(x);
}

/* We came back only to say that we have its record. */
static void on_frame_late(struct exec *x, const struct frame *f)
{
	struct err e;

	if (x->phase == EXEC_LEAVING)
		return;
	if (f->type == FRAME_STARTED) {
		x->unanswered = false;
		return take_leave(x);
	}
	if (f->type != FRAME_ERROR)
		return;
	frame_guest_error(f, &e);
	if (e.code == ERR_BUSY || e.code == ERR_LIMIT)
		return reach_again(x);
	leave(x);
}

/* May it say now that the command runs? One that is held does not before it is let go. */
static bool is_awaited(const struct exec *x)
{
	return x->phase == EXEC_STARTING || x->phase == EXEC_GOING || x->phase == EXEC_REACHING;
}

static void on_frame(void *data, const struct frame *f)
{
	struct exec *x = data;
	bool runs = x->phase == EXEC_RUNNING;
	struct err e;
	uint32_t n;

	if (x->phase >= EXEC_TELLING)
		return on_frame_late(x, f);
	if (exec_is_over(x))
		return;
	err_set(&e, ERR_INTERNAL, "an unexpected frame of type %u", f->type);
	if (f->type == FRAME_ERROR)
		return on_init_error(x, f);
	if (f->type == FRAME_STARTED && is_awaited(x) && frame_u32(f, &n, &e) == 0)
		return on_started(x, n);
	if (f->type == FRAME_HELD && exec_may_be_held(x) && frame_u32(f, &n, &e) == 0)
		return exec_held(x, n);
	if (f->type == FRAME_TAKEN && runs && frame_u32(f, &n, &e) == 0) {
		x->stdin_out -= n < x->stdin_out ? n : x->stdin_out;
		if (x->client && x->client->events->taken)
			x->client->events->taken(x->client, n);
		return mailbox_look(x);
	}
	if (f->type == FRAME_BESIDE && runs) {
		x->alone = false;
		return;
	}
	if (f->type == FRAME_KILLED && runs && !x->let_go)
		return exec_oom_ask(x);
	if (f->type == FRAME_SIGNALLED && runs && frame_u32(f, &n, &e) == 0)
		return exec_signals_back(x, n < x->signals_sent ? n : x->signals_sent, NULL);
	if (f->type != FRAME_EXITED || !runs ||
	    exec_exit_decode(f->payload, &x->exit, &e) < 0)
		return nonsense(x, &e);
	if (x->exit.kind == EXEC_OOM || x->exit.kind == EXEC_LOST)
		return lost(x); /* not the guest's to say: the host looks for itself */
	x->absent = true;
	settle(x);
}

static void on_gone(void *data, const struct err *why)
{
	struct exec *x = data;

	if (x->phase >= EXEC_TELLING)
		return reach_again(x);
	if (exec_is_over(x))
		return;
	if (why)
		return nonsense(x, why);
	reach_again(x);
}

static void on_sent(void *data, bool broken)
{
	struct exec *x = data;

	(void)broken; /* the reader sees that */
	if (init_stream_backlog(x->stream) > 0)
		return;
	if (x->phase == EXEC_LEAVING)
		return leave(x);
	mailbox_look(x);
}

static const struct init_stream_events stream_events = {
	.pieces = FRAME_BIT(FRAME_STDOUT) | FRAME_BIT(FRAME_STDERR),
	.piece = on_output,
	.frame = on_frame,
	.gone = on_gone,
	.sent = on_sent,
};

/* ---- the way there ---- */

static void on_way_again(void *data, struct init_dial *way, const struct err *why);

static void on_retry(uv_timer_t *timer)
{
	struct exec *x = timer->data;
	struct init_dial_ask way = { x->reactor, x->request, NULL, x->sandbox, true };

	x->pending++;
	init_dial_find(&way, on_way_again, x);
}

/* The connection broke: that says nothing about the command. Ask for it. */
static void reach_again(struct exec *x)
{
	init_stream_close(take_ptr(x->stream));
	exec_move(x, x->phase >= EXEC_TELLING ? EXEC_TELLING : EXEC_REACHING);
	exec_signals_unsure(x);
	x->paused = x->unanswered = false;
	x->input_ended = false; /* it may not have heard that */
	x->stdin_out = 0;
	uv_timer_start(&x->retry, on_retry, x->retry_ms, 0);
	x->retry_ms = x->retry_ms < RETRY_LAST ? x->retry_ms * 2 : RETRY_LAST;
}

static void on_way_again(void *data, struct init_dial *way, const struct err *why)
{
	struct exec *x = data;
	cleanup(buf_done) struct buf out = buf_make(256);
	struct exec_attach attach = { 0 };

	if (exec_came_back(x) || x->stream || /* an earlier search has found it */
	    (x->phase != EXEC_REACHING && x->phase != EXEC_TELLING))
		return;
	/* Its sandbox is gone, or its processes are, or it was started anew. */
	x->gone = why ? why->code == ERR_NOT_FOUND || why->code == ERR_CONFLICT
		      : way->generation != x->generation;
	if (x->gone && x->phase == EXEC_TELLING)
		return leave(x);
	if (x->gone) {
		x->absent = true; /* with its sandbox's processes */
		return lost(x);
	}
	x->let_go = false;
	if (!why)
		x->stream = init_stream_open(x->reactor, take_fd(way->fd), &stream_events, x);
	if (!x->stream)
		return reach_again(x);
	memcpy(attach.id, x->journal->head.ask.id, sizeof(attach.id));
	memcpy(attach.offset, x->journal->slot.offset, sizeof(attach.offset));
	x->acked = attach.offset[0] + attach.offset[1];
	exec_attach_encode(&out, &attach);
	x->unanswered = true;
	init_stream_send(x->stream, FRAME_ATTACH, out.data, out.len);
}

void exec_run(struct exec *x, int fd, const struct exec_request *ask)
{
	cleanup(buf_done) struct buf out = buf_make(FRAME_PAYLOAD_MAX);
	struct err e;

	x->stream = init_stream_open(x->reactor, fd, &stream_events, x);
	if (!x->stream) {
		err_set(&e, ERR_INTERNAL, "the connection to the sandbox cannot be used");
		return exec_refuse(x, &e);
	}
	exec_move(x, EXEC_STARTING);
	uv_timer_start(&x->deadline, on_deadline, START_MS, 0);
	exec_request_encode(&out, ask);
	init_stream_send(x->stream, FRAME_EXEC, out.data, out.len);
}

void exec_bind(struct exec *x, struct journal *j)
{
	x->journal = j;
	pthread_mutex_lock(&j->lock);
	j->reactor = x->reactor;
	j->exec = x;
	pthread_mutex_unlock(&j->lock);
	x->busy = sandbox_cache_busy(x->reactor->berthd->sandboxes, x->sandbox, time_mono_ms(), 1);
	x->begun = sandbox_cache_begun(x->reactor->berthd->sandboxes, x->sandbox, &x->alone);
}

void exec_go_on(struct reactor *r, struct journal *j)
{
	struct exec *x = exec_new(r);

	x->keep = true;
	memcpy(x->request, "restart", sizeof("restart"));
	memcpy(x->sandbox, j->head.sandbox, sizeof(x->sandbox));
	x->generation = j->head.generation;
	exec_bind(x, journal_ref(j));
	x->alone = false; /* this berthd does not know what was beside it */
	exec_move(x, j->slot.state == JOURNAL_RUNNING ? EXEC_REACHING : EXEC_TELLING);
	if (x->phase == EXEC_TELLING)
		x->exit = j->slot.exit;
	else
		set_deadline(x);
	on_retry(&x->retry);
}

void exec_abandon(struct tail *t)
{
	struct exec *x = t->exec;

	if (!x)
		return;
	t->exec = NULL;
	x->client = NULL;
	if (x->phase == EXEC_CLOSED)
		return; /* it was refused, and that was not told yet */
	x->unwanted = !x->journal && !x->keep;
	/* When we end, only our clients lose their connection to us. */
	if (!x->keep && !x->reactor->server.closing)
		exec_signal(x, 9);
	exec_resume(x);
}

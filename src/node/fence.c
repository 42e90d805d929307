#include "node/fence.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/time.h"
#include "node/freeze.h"
#include "node/node.h"
#include "node/task.h"
#include "node/verbs.h"

#define RECORD       "fence"
#define RECORD_MAX   256
#define LOOK_MS      2
#define LONG_AGO     1
#define FREEZE_LIMIT 2000 /* to be seen frozen; then it is told, and looked at again */
#define KILL_LIMIT   10000

struct saved {
	uint32_t state;
	uint64_t epoch, until_ms;
};

/* clang-format off */
static const struct field saved_fields[] = {
	FIELD(FIELD_U32, saved, state),
	FIELD(FIELD_U64, saved, epoch),
	FIELD(FIELD_U64, saved, until_ms),
	{ 0 }
};
/* clang-format on */

static void on_look_frozen(uv_timer_t *timer);
static void on_look_killed(uv_timer_t *timer);

/* Held or frozen, there is a guard; at no other time. */
static int post_guard(struct node *n, struct err *e)
{
	struct fence *f = n->fence;

	if (f->state == FENCE_HELD)
		return freeze_watchdog_set(&f->guard, &n->cgroups, f->until_ms, e);
	if (f->state == FENCE_FROZEN)
		return freeze_watchdog_set(&f->guard, &n->cgroups, LONG_AGO, e);
	freeze_watchdog_dismiss(&f->guard);
	return 0;
}

/* Written before it is acted upon. It need not survive a power cut: nothing else does. */
static int move(struct node *n, enum fence_state to, uint64_t epoch, uint64_t until_ms,
		struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(RECORD_MAX);
	struct saved s = { .state = to, .epoch = epoch, .until_ms = until_ms };
	struct fence *f = n->fence;
	char number[24];

	record_encode(&text, saved_fields, &s);
	if (file_replace_fast(n->run_fd, RECORD, text.data, text.len, e) < 0)
		return err_wrap(e, "write down the lease");
	if (f->state != to) {
		snprintf(number, sizeof(number), "%" PRIu64, epoch);
		log_event(LOG_INFO, "fence moved", "from", fence_state_name(f->state), "to",
			  fence_state_name(to), "epoch", number, NULL);
	}
	f->state = to;
	f->epoch = epoch;
	f->until_ms = until_ms;
	crash_point("node.fence-written");
	return post_guard(n, e);
}

static int load(struct node *n, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(RECORD_MAX);
	struct saved s;

	if (file_read(n->run_fd, RECORD, &text, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	if (record_decode((struct bytes){ (const uint8_t *)text.data, text.len }, saved_fields, &s,
			  e) < 0 ||
	    s.state >= FENCE_STATE_COUNT)
		return err_set(e, ERR_INVALID, "%s/" RECORD " cannot be read",
			       n->settings.run_dir);
	n->fence->state = (enum fence_state)s.state;
	n->fence->epoch = s.epoch;
	n->fence->until_ms = s.until_ms;
	return 0;
}

/* ---- freezing ---- */

static void arm(struct node *n)
{
	uint64_t ms = n->fence->state == FENCE_HELD ? n->fence->until_ms : 0;
	struct itimerspec at = {
		.it_value = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 },
	};

	(void)timerfd_settime(n->fence->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* A kernel that cannot hold them still leaves one way to keep the promise. */
static void begin_freezing(struct node *n)
{
	struct fence *f = n->fence;
	struct err e;

	f->frozen_ms = 0;
	if (freeze_all(&n->cgroups, &e) < 0) {
		log_event(LOG_ERROR, "cannot freeze: killing instead", "why", e.msg, NULL);
		kill_all(&n->cgroups);
	}
	crash_point("node.fence-frozen");
	f->give_up_ms = time_boot_ms() + FREEZE_LIMIT;
	on_look_frozen(&f->look);
}

static void on_look_frozen(uv_timer_t *timer)
{
	struct node *n = timer->data;
	struct fence *f = n->fence;
	uint64_t now = time_boot_ms();

	if (f->state != FENCE_FROZEN)
		return;
	if (freeze_is_done(&n->cgroups) == PRESENCE_PRESENT ||
	    anything_runs(&n->cgroups) == PRESENCE_ABSENT) {
		f->frozen_ms = now;
		log_event(LOG_WARN, "all sandboxes are frozen: the lease was not renewed", NULL);
		return;
	}
	if (now >= f->give_up_ms) {
		log_event(LOG_ERROR, "not everything is frozen yet", NULL);
		return begin_freezing(n); /* again, and told again */
	}
	uv_timer_start(timer, on_look_frozen, LOOK_MS, 0);
}

static void freeze_now(struct node *n)
{
	struct err e;

	if (move(n, FENCE_FROZEN, n->fence->epoch, n->fence->until_ms, &e) < 0) {
		/* Unwritten, but no less true: the record's time has passed, too. */
		log_event(LOG_ERROR, "fence could not be recorded: sandboxes count as frozen",
			  "why", e.msg, NULL);
		n->fence->state = FENCE_FROZEN;
	}
	begin_freezing(n);
}

static void on_alarm(uv_poll_t *poll, int status, int events)
{
	struct node *n = poll->data;
	uint64_t times;

	(void)status, (void)events;
	(void)!read(n->fence->alarm_fd, &times, sizeof(times));
	if (n->fence->state != FENCE_HELD)
		return;
	if (time_boot_ms() < n->fence->until_ms)
		return arm(n);
	freeze_now(n);
}

/* ---- killing ---- */

static void answer(struct call *c)
{
	const struct node *n = c->node;
	struct node_fence reply = {
		.state = n->fence->state,
		.epoch = n->fence->epoch,
		.until_ms = n->fence->until_ms,
		.frozen_ms = n->fence->frozen_ms,
		.still = freeze_is_done(&n->cgroups),
	};

	/* Who only renews has no use for a look at every sandbox. */
	if (c->ask.lease.op != LEASE_HOLD)
		reply.runs = anything_runs(&n->cgroups);
	call_reply(c, &reply, -1);
}

static void answer_killers(struct node *n, const struct err *why)
{
	struct call *c;

	while ((c = n->fence->killers)) {
		n->fence->killers = c->next_waiter;
		if (why)
			call_fail(c, why);
		else
			answer(c);
	}
}

/* An engine on its way is in no group yet: it is ended by its own name. */
static bool end_tasks(struct node *n)
{
	bool any = false;

	for (size_t i = 0; i < ALLOCATION_BUCKETS; i++)
		for (struct allocation *a = n->all->buckets[i]; a; a = a->next) {
			if (a->phase == PHASE_BUILT && !a->call)
				a->phase = PHASE_ENDED; /* of that epoch: not to be started */
			if (!a->task || a->phase == PHASE_DESTROYING)
				continue;
			task_kill(a->task);
			any = true;
		}
	return any;
}

static void on_look_killed(uv_timer_t *timer)
{
	struct node *n = timer->data;
	struct fence *f = n->fence;
	struct err e;
	bool tasks;

	if (f->state != FENCE_KILLING)
		return; /* an old timer: what runs now is of another epoch */
	tasks = end_tasks(n);
	kill_all(&n->cgroups);
	crash_point("node.fence-killed");
	if (!tasks && anything_runs(&n->cgroups) == PRESENCE_ABSENT) {
		if (move(n, FENCE_CLEAR, f->epoch, 0, &e) < 0)
			return answer_killers(n, &e);
		return answer_killers(n, NULL);
	}
	if (f->killers && time_boot_ms() >= f->give_up_ms) {
		err_set(&e, ERR_TIMEOUT, "processes of an epoch that was taken over are still "
					 "there after SIGKILL");
		answer_killers(n, &e);
	}
	uv_timer_start(timer, on_look_killed, f->killers ? LOOK_MS : FREEZE_LIMIT, 0);
}

static void begin_killing(struct node *n)
{
	n->fence->give_up_ms = time_boot_ms() + KILL_LIMIT;
	on_look_killed(&n->fence->look);
}

/* ---- what is told ---- */

/* Due until it was done: who fails half way is told again, and goes on there. */
static int thaw(struct node *n, struct err *e)
{
	if (!n->fence->thaw_due)
		return 0;
	if (thaw_all(&n->cgroups, e) < 0)
		return err_wrap(e, "let the sandboxes go on");
	n->fence->thaw_due = false;
	crash_point("node.fence-thawed");
	return 0;
}

static int hold(struct node *n, const struct node_lease *l, struct err *e)
{
	struct fence *f = n->fence;
	bool same = f->epoch == l->epoch;

	if (l->epoch == 0 || l->epoch < f->epoch)
		return err_set(e, ERR_CONFLICT, "epoch %" PRIu64 " is over: this host had %" PRIu64,
			       l->epoch, f->epoch);
	if ((f->state == FENCE_HELD || f->state == FENCE_FROZEN) && !same)
		return err_set(e, ERR_CONFLICT, "epoch %" PRIu64 " runs here: kill it first",
			       f->epoch);
	if (f->state == FENCE_KILLING || (f->state == FENCE_CLEAR && same))
		return err_set(e, ERR_CONFLICT, "epoch %" PRIu64 " was taken over", l->epoch);
	if (time_boot_ms() >= l->until_ms)
		return err_set(e, ERR_CONFLICT, "that lease is over already");
	if (same && f->state == FENCE_HELD && l->until_ms <= f->until_ms)
		return thaw(n, e); /* answers may overtake each other */
	if (f->state != FENCE_HELD || time_boot_ms() >= f->until_ms)
		f->thaw_due = true; /* by whomever: the guard may have been faster */
	if (move(n, FENCE_HELD, l->epoch, l->until_ms, e) < 0)
		return -1;
	arm(n);
	f->frozen_ms = 0;
	return thaw(n, e);
}

static int release(struct node *n, struct err *e)
{
	if (n->fence->state == FENCE_NONE)
		return thaw(n, e);
	if (n->fence->state == FENCE_KILLING)
		return err_set(e, ERR_CONFLICT, "what ran here was taken over: it must die first");
	n->fence->thaw_due = true;
	if (move(n, FENCE_NONE, n->fence->epoch, 0, e) < 0)
		return -1;
	arm(n);
	return thaw(n, e);
}

void verb_lease(struct call *c)
{
	const struct node_lease *l = &c->ask.lease;
	struct node *n = c->node;
	struct err e = { 0 };
	int r = 0;

	switch (l->op) {
	case LEASE_ASK:
		break;
	case LEASE_HOLD:
		r = hold(n, l, &e);
		break;
	case LEASE_FREEZE:
		if (n->fence->state == FENCE_HELD && l->epoch == n->fence->epoch)
			freeze_now(n);
		break;
	case LEASE_KILL:
		if (n->fence->state != FENCE_KILLING)
			r = move(n, FENCE_KILLING, n->fence->epoch, 0, &e);
		if (r < 0)
			break;
		c->next_waiter = n->fence->killers;
		n->fence->killers = c;
		return begin_killing(n);
	case LEASE_RELEASE:
		r = release(n, &e);
		break;
	default:
		r = err_set(&e, ERR_INVALID, "unknown lease operation %u", l->op);
	}
	if (r < 0)
		return call_fail(c, &e);
	answer(c);
}

/* It lay in a queue while this host was taken over: what it means runs elsewhere. */
static int check_epoch(const struct call *c, struct err *e)
{
	if (c->verb == NODE_CONNECT || c->ask.target.epoch == c->node->fence->epoch)
		return 0;
	err_set(e, ERR_BUSY, "decided under epoch %" PRIu64 " of this host, which has %" PRIu64,
		c->ask.target.epoch, c->node->fence->epoch);
	return err_fix(e, "Try again: what was begun here goes on on another host.");
}

int fence_check(const struct call *c, struct err *e)
{
	const struct node *n = c->node;

	if (c->verb != NODE_CREATE && c->verb != NODE_START && c->verb != NODE_CONNECT)
		return 0;
	if (n->fence->state == FENCE_NONE)
		return 0;
	if (n->fence->state == FENCE_HELD && time_boot_ms() < n->fence->until_ms)
		return check_epoch(c, e);
	if (n->fence->state == FENCE_HELD || n->fence->state == FENCE_FROZEN) {
		err_set(e, ERR_BUSY, "the sandboxes of this host are frozen: it could not "
				     "renew its lease in time");
		return err_fix(e, "They go on when the host reaches the database again; if another "
				  "host takes over, they begin anew there.");
	}
	err_set(e, ERR_BUSY, "this host was taken over by another and has no lease yet");
	return err_fix(e, "Try again: what ran here begins anew on another host.");
}

static int watch(struct node *n, struct err *e)
{
	struct fence *f = n->fence;
	int r;

	f->alarm_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	if (f->alarm_fd < 0)
		return err_sys(e, errno, "timerfd");
	r = uv_poll_init(&n->loop, &f->alarm, f->alarm_fd);
	if (r == 0)
		r = uv_poll_start(&f->alarm, UV_READABLE, on_alarm);
	if (r < 0)
		return err_uv(e, r, "watch the lease");
	uv_timer_init(&n->loop, &f->look);
	f->alarm.data = f->look.data = n;
	f->opened = true;
	return 0;
}

int fence_open(struct node *n, struct err *e)
{
	struct fence *f = n->fence;

	if (load(n, e) < 0 || watch(n, e) < 0)
		return -1;
	if (f->state == FENCE_HELD && time_boot_ms() < f->until_ms) {
		arm(n); /* told to thaw, and killed before it did */
		return post_guard(n, e) < 0 ? -1 : thaw_all(&n->cgroups, e);
	}
	if (f->state == FENCE_HELD || f->state == FENCE_FROZEN)
		freeze_now(n);
	if (f->state == FENCE_KILLING)
		begin_killing(n);
	return 0;
}

void fence_close(struct node *n)
{
	if (!n->fence->opened)
		return;
	/* What goes on stays guarded. */
	if (anything_runs(&n->cgroups) == PRESENCE_ABSENT)
		freeze_watchdog_dismiss(&n->fence->guard);
	freeze_watchdog_close(&n->fence->guard);
	uv_poll_stop(&n->fence->alarm);
	uv_close((uv_handle_t *)&n->fence->alarm, NULL);
	uv_close((uv_handle_t *)&n->fence->look, NULL);
	close_fd(&n->fence->alarm_fd);
}

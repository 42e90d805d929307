#include "berthd/agent/lease-op.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/control/transition.h"
#include "berthd/exec/kill.h"
#include "berthd/journal/gone.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"

#define TRIES_MAX  4
#define SEEN_SHARE 8 /* of an attempt's time, for init to say that what it killed is gone */

struct lease_operation *lease_op_new(struct reactor *r, const char *request, const char *owner)
{
	struct lease_operation *t = xcalloc(1, sizeof(*t));

	t->reactor = r;
	t->all = !owner;
	(void)!str_copy(t->request, sizeof(t->request), request);
	(void)!str_copy(t->owner, sizeof(t->owner), owner ? owner : "");
	return t;
}

void lease_op_name(struct lease_operation *t, const char *sandbox, const char *name)
{
	(void)!str_copy(t->w.sandbox, sizeof(t->w.sandbox), sandbox);
	(void)!str_copy(t->w.name, sizeof(t->w.name), name);
}

void lease_op_free(struct lease_operation *t)
{
	if (t->in_turn)
		turn_give(t->reactor->berthd->name_locks, &t->turn);
	look_done(&t->look);
	look_groups_done(&t->groups);
	free(t);
}

/* ---- deciding ---- */

struct wrapper_boot lease_op_boot(const struct berthd *b)
{
	struct wrapper_boot now = { 0 };

	(void)!str_copy(now.host, sizeof(now.host), b->settings.host);
	(void)!str_copy(now.boot_id, sizeof(now.boot_id), b->journals->boot_id);
	return now;
}

/* The database's clock, carried on from when the record was read. */
static struct moment moment_now(const struct lease_operation *t)
{
	return (struct moment){
		.now_ms = t->w.read_ms + (time_mono_ms() - t->read_mono_ms),
		.divisor = (unsigned)t->reactor->berthd->settings.timer_divisor,
		.jitter = (double)(id_number() % 1024) / 1024,
	};
}

int lease_op_apply(struct lease_operation *t, const struct lease_input *in,
		   const struct moment *now,
		   struct err *e)
{
	if (lease_apply(&t->w.lease, in, now, &t->action, e) < 0)
		return -1;
	t->event = lease_event_name(in->event);
	if (in->event == LEASE_ALLOCATE)
		t->w.boot = lease_op_boot(t->reactor->berthd);
	else if (t->w.lease.state == LEASE_NONE)
		t->w.boot = (struct wrapper_boot){ 0 };
	if (in->event == LEASE_ACCEPTED)
		t->work = JOURNAL_WORK_ACCEPTED;
	if (in->event == LEASE_SETTLED)
		t->work = JOURNAL_WORK_SETTLED;
	return 1;
}

int lease_op_attempt(struct lease_operation *t, enum lease_event ev, const struct moment *now,
		     struct err *e)
{
	struct lease_input in = { .event = ev, .attempt = id_number() };

	t->attempt = in.attempt;
	return lease_op_apply(t, &in, now, e);
}

int lease_op_stop(struct lease_operation *t, enum lease_reason reason, const struct moment *now,
		  struct err *e)
{
	struct lease_input in = { .event = LEASE_FORCE, .reason = reason };

	if (lease_op_apply(t, &in, now, e) < 0)
		return -1;
	return t->action == LEASE_ACT_TRY ? lease_op_attempt(t, LEASE_BEGIN, now, e) : 1;
}

int lease_op_only_look(struct lease_operation *t, const struct moment *now, struct err *e)
{
	(void)t, (void)now, (void)e;
	return 0;
}

static bool has_other(const struct strv *execs, const char *own)
{
	for (size_t i = 0; i < execs->len; i++)
		if (strcmp(execs->items[i], own) != 0)
			return true;
	return false;
}

/* The instance is not among them: another one is. */
static bool is_foreign(const struct lease_operation *t)
{
	char own[WRAPPER_EXEC_SIZE];

	wrapper_exec_id(own, t->w.name, &t->w.lease.instance);
	return has_other(&t->look.running, own) || has_other(&t->look.groups, own);
}

/* Of one whose record cannot be read nothing is believed, its boot neither. */
static bool is_rebooted(const struct lease_operation *t)
{
	struct wrapper_boot now = lease_op_boot(t->reactor->berthd);

	return t->in_turn && !t->w.unreadable && t->w.lease.state != LEASE_NONE &&
	       wrapper_boot_is_over(&t->w.boot, &now);
}

/* Whatever is to be done with it, first it is none: the next decision is that of a free name. */
static int decide_rebooted(struct lease_operation *t, const struct moment *now, struct err *e)
{
	struct lease_input in = { .event = LEASE_PROVEN };

	if (lease_op_apply(t, &in, now, e) < 0)
		return -1;
	t->event = "host_rebooted";
	t->rebooted = true;
	return 1;
}

/* What an attempt or a look saw, told under its id. */
static int decide_seen(struct lease_operation *t, const struct moment *now, struct err *e)
{
	static const struct {
		enum lease_event ev;
		const char *text;
	} facts[] = {
		[WRAPPER_UNKNOWN] = { LEASE_UNKNOWN, "whether it has ended cannot be seen" },
		[WRAPPER_ABSENT] = { LEASE_ABSENT, NULL },
		[WRAPPER_PRESENT] = { LEASE_PRESENT, "it was killed, and is still there" },
	};
	struct lease_input widen = {
		.event = LEASE_STOP,
		.session_wide = true,
		.reason = LEASE_UNEXPECTED_WRAPPER,
		.seen_generation = t->look.seen.max_generation,
	};
	struct lease_input fact = {
		.event = facts[t->look.seen.seen].ev,
		.attempt = t->attempt,
		.text = facts[t->look.seen.seen].text,
	};

	if (is_foreign(t) && lease_op_apply(t, &widen, now, e) < 0)
		return -1;
	return lease_op_apply(t, &fact, now, e);
}

/* ---- writing ---- */

static void write_receipt(struct lease_operation *t)
{
	cleanup(buf_done) struct buf out = buf_make(WRAPPER_RECEIPT_SIZE);
	const struct instance *i = &t->before.instance;
	char when[TIME_TEXT_SIZE], exec[WRAPPER_EXEC_SIZE] = "";
	const char *seen = "no exec of its name runs";

	time_text(moment_now(t).now_ms, when);
	if (i->generation)
		wrapper_exec_id(exec, t->w.name, i);
	json_open(&out, '{');
	json_str(&out, "observed_at", when);
	json_str(&out, "host", t->sb.host);
	json_str(&out, "instance", i->id);
	json_int(&out, "generation", (int64_t)i->generation);
	json_str(&out, "exec", exec);
	if (t->rebooted)
		seen = "its host was started again since";
	else if (t->sb.state != SANDBOX_READY)
		seen = "its sandbox has no processes";
	else if (t->look.evidence == EVIDENCE_HOST)
		seen = "no cgroup of its name has a process";
	json_str(&out, "seen", seen);
	json_str(&out, "evidence",
		 look_evidence_name(t->rebooted ? EVIDENCE_HOST : t->look.evidence));
	if (t->before.reason != LEASE_REASON_NONE)
		json_str(&out, "reason", lease_reason_name(t->before.reason));
	if (t->before.stop.last_error[0])
		json_str(&out, "last_error", t->before.stop.last_error);
	buf_adds(&out, "}");
	(void)!str_copy(t->w.receipt, sizeof(t->w.receipt), buf_str(&out));
}

/* What the host saw gone, the journals need not doubt: its cgroup is to be removed. */
static void write_gone(struct lease_operation *t)
{
	bool other = strcmp(t->before.instance.id, t->w.lease.instance.id) != 0;

	if (other && t->sb.state == SANDBOX_READY && t->look.seen.seen == WRAPPER_ABSENT &&
	    t->groups.host == LOOK_SEEN)
		journals_mark_gone(t->reactor->berthd->journals, t->w.sandbox, &t->look.all);
}

static struct alert alert_of(const struct lease_operation *t)
{
	struct alert a = { .kind = "wrapper_quarantined" };

	memcpy(a.sandbox, t->sb.id, sizeof(a.sandbox));
	memcpy(a.owner, t->sb.owner, sizeof(a.owner));
	memcpy(a.host, t->sb.host, sizeof(a.host));
	(void)!str_copy(a.subject, sizeof(a.subject), t->w.name);
	(void)!str_copy(a.message, sizeof(a.message), t->w.lease.stop.last_error);
	return a;
}

static void tell_alert(const struct lease_operation *t)
{
	struct alert a = alert_of(t);

	alert_tell(t->reactor->berthd, &a, t->request,
		   "stop it again, or put its sandbox to sleep: that proves it gone");
}

/* Before the lease is written: one too many may stay, never one too few. */
static int write_alert(struct lease_operation *t, struct store *s, struct err *e)
{
	struct alert a = alert_of(t);

	if (t->action == LEASE_ACT_ALERT)
		return store_alert_raise(s, &a, e);
	if (t->before.stop.state != STOP_NONE && t->w.lease.state == LEASE_NONE)
		return store_alert_end(s, a.sandbox, a.kind, a.subject, e);
	return 0;
}

/* On this host first: should the database not take it, its deadline finds it here. */
static void note_work(struct lease_operation *t)
{
	char exec[WRAPPER_EXEC_SIZE];

	if (t->work == JOURNAL_NO_WORK || t->before.instance.generation == 0)
		return;
	wrapper_exec_id(exec, t->w.name, &t->before.instance);
	look_note_work(t->reactor->berthd, t->w.sandbox, exec, t->work);
	t->work = JOURNAL_NO_WORK;
}

static int write_lease(struct job *job, struct store *s, struct err *e)
{
	struct lease_operation *t = container_of(job, struct lease_operation, job);

	if (t->before.state != LEASE_NONE && t->w.lease.state == LEASE_NONE)
		write_receipt(t);
	note_work(t);
	if (write_alert(t, s, e) < 0 || store_wrapper_move(s, &t->w, &t->w, e) < 0)
		return -1;
	crash_point("wrapper.lease-written");
	write_gone(t);
	t->read_mono_ms = time_mono_ms();
	return 0;
}

/* ---- reading and looking ---- */

static int read_all(struct job *job, struct store *s, struct err *e)
{
	struct lease_operation *t = container_of(job, struct lease_operation, job);
	struct berthd *b = t->reactor->berthd;
	int (*read)(struct store *, const char *, const char *, struct wrapper *, struct err *) =
		t->open ? store_wrapper_open : store_wrapper_get;

	if (store_sandbox_get(s, t->all ? NULL : t->owner, t->w.sandbox, &t->sb, e) < 0)
		return -1;
	if (t->sb.state == SANDBOX_GONE)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s was deleted", t->sb.id);
	if (strcmp(t->sb.host, b->settings.host) != 0)
		return err_set(e, ERR_BUSY, "%s lives on host %s now", t->sb.id, t->sb.host);
	if (read(s, t->sb.id, t->w.name, &t->w, e) < 0)
		return -1;
	t->read_mono_ms = time_mono_ms();
	t->before = t->w.lease;
	t->rebooted = false;
	if (t->w.unreadable) {
		struct alert a = alert_of(t);

		return store_alert_raise(s, &a, e);
	}
	return 0;
}

static void on_read(struct job *job);

void lease_op_again(struct lease_operation *t, lease_op_decide_fn *decide)
{
	t->decide = decide;
	job_submit(t->reactor, t->owner, &t->job, read_all, on_read);
}

static void over(struct lease_operation *t, const struct err *why)
{
	t->done(t, t->failed ? &t->why : why);
}

static void finished(struct lease_operation *t)
{
	lease_op_decide_fn *then = t->then;

	t->then = NULL;
	if (then)
		return lease_op_again(t, then);
	over(t, NULL);
}

/* ---- acting ---- */

static void ask_group(struct lease_operation *t, enum group_op op, const char *name,
		      const struct node_call_events *events)
{
	struct node_group ask = { .generation = t->sb.generation, .op = op };

	memcpy(ask.request, t->request, sizeof(ask.request));
	memcpy(ask.sandbox, t->sb.id, sizeof(t->sb.id));
	(void)!str_copy(ask.name, sizeof(ask.name), name);
	node_call(&t->reactor->node, NODE_GROUP, &ask, -1, events, t);
}

static bool is_meant(const struct lease_operation *t, const char *exec)
{
	char own[WRAPPER_EXEC_SIZE];

	wrapper_exec_id(own, t->w.name, &t->w.lease.instance);
	return t->w.lease.session_wide || strcmp(exec, own) == 0;
}

static void kill_groups(struct lease_operation *t);

static void on_group_killed(void *data, const union node_any *record, int *fd,
			    const struct err *why)
{
	(void)record, (void)fd, (void)why; /* what counts is what is seen now */
	kill_groups(data);
}

static const struct node_call_events killed_events = { .on_done = on_group_killed };

/* Init was asked first, so that it can tell how it ended. The last word is the host's. */
static void kill_groups(struct lease_operation *t)
{
	while (t->killed < t->look.groups.len) {
		const char *exec = t->look.groups.items[t->killed++];

		if (is_meant(t, exec))
			return ask_group(t, GROUP_KILL, exec, &killed_events);
	}
	crash_point("wrapper.struck");
	lease_op_again(t, decide_seen);
}

static void on_killed(void *data, const struct err *why)
{
	struct lease_operation *t = data;

	(void)why; /* what counts is what is seen now */
	if (--t->ending == 0)
		kill_groups(t);
}

/* TERM, the looks, then KILL. What was not begun as a wrapper may leave things behind: KILL. */
static void kill_exec(struct lease_operation *t, const char *exec)
{
	static const enum constant looks[] = { CONSTANT_OBSERVE_1, CONSTANT_OBSERVE_2,
					       CONSTANT_OBSERVE_3 };
	struct kill_spec spec = { .signum = SIGKILL };
	struct journal *j;
	struct err ignored;

	if (journal_find(t->reactor->berthd->journals, t->w.sandbox, exec, &j, &ignored) < 0)
		return; /* it will be seen what that means */
	if (j->head.ask.flags & EXEC_WHOLE) {
		spec.signum = SIGTERM;
		for (size_t i = 0; i < array_len(looks); i++)
			spec.grace_ms += constant_ms(looks[i], moment_now(t).divisor);
	}
	if (t->groups.host == LOOK_SEEN) /* a guest that does not answer is not waited for long */
		spec.seen_ms =
			constant_ms(CONSTANT_STOP_ATTEMPT, moment_now(t).divisor) / SEEN_SHARE + 1;
	t->ending++;
	exec_kill(t->reactor, j, &spec, on_killed, t);
	journal_unref(j);
}

static void act_end(struct lease_operation *t)
{
	crash_point("wrapper.stop-begun");
	t->ending = 1; /* until all were sent the signal */
	t->killed = 0;
	for (size_t i = 0; i < t->look.running.len; i++)
		if (is_meant(t, t->look.running.items[i]))
			kill_exec(t, t->look.running.items[i]);
	on_killed(t, NULL);
}

static void act_observe(struct lease_operation *t)
{
	lease_op_again(t, decide_seen);
}

static void on_tidied(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_operation *t = data;

	(void)record, (void)fd, (void)why; /* an empty one does no harm: it goes with the next */
	if (t->action == LEASE_ACT_SPAWN)
		return t->spawn(t);
	finished(t);
}

static const struct node_call_events tidied_events = { .on_done = on_tidied };

/* The cgroups of instances that were. */
static void tidy(struct lease_operation *t)
{
	char prefix[WRAPPER_EXEC_SIZE];

	if (t->groups.empty.len + t->groups.full.len == 0)
		return on_tidied(t, NULL, NULL, NULL);
	wrapper_exec_prefix(prefix, t->w.name);
	ask_group(t, GROUP_REMOVE, prefix, &tidied_events);
}

static void act_spawn(struct lease_operation *t)
{
	crash_point("wrapper.authorised");
	tidy(t);
}

static void act_note(struct lease_operation *t)
{
	char attempts[16];

	snprintf(attempts, sizeof(attempts), "%u", t->w.lease.stop.attempts);
	log_event(LOG_INFO, "wrapper stop was asked for again: nothing new", "sandbox",
		  t->w.sandbox, "wrapper", t->w.name, "request_id", t->request, "state",
		  lease_state_name(t->w.lease.state), "attempts", attempts, "why",
		  t->w.lease.stop.last_error, NULL);
	finished(t);
}

static void act_alert(struct lease_operation *t)
{
	tell_alert(t);
	finished(t);
}

/* clang-format off */
static void (*const actions[LEASE_ACTION_COUNT])(struct lease_operation *t) = {
	[LEASE_ACT_NONE]	= finished,
	[LEASE_ACT_NOTE]	= act_note,
	[LEASE_ACT_SPAWN]	= act_spawn,
	[LEASE_ACT_USE]		= finished,
	[LEASE_ACT_SUPERVISE]	= finished, /* its deadline does */
	[LEASE_ACT_TRY]		= finished, /* its alarm does */
	[LEASE_ACT_END]		= act_end,
	[LEASE_ACT_OBSERVE]	= act_observe,
	[LEASE_ACT_ALERT]	= act_alert,
	[LEASE_ACT_DRAIN]	= tidy,
};
/* clang-format on */

static void on_written(struct job *job)
{
	struct lease_operation *t = container_of(job, struct lease_operation, job);

	if (job->failed && job->e.code == ERR_CONFLICT && ++t->tries < TRIES_MAX)
		return lease_op_again(t, t->decide);
	if (job->failed && job->e.code == ERR_CONFLICT)
		err_set(&job->e, ERR_BUSY, "wrapper %s is being changed by others", t->w.name);
	if (job->failed)
		return over(t, &job->e);
	log_event(LOG_INFO, "wrapper moved", "sandbox", t->w.sandbox, "wrapper", t->w.name, "state",
		  lease_state_name(t->w.lease.state), "event", t->event, "instance",
		  t->w.lease.instance.id, "request_id", t->request, NULL);
	if (t->rebooted) {
		t->rebooted = false;
		return lease_op_again(t, t->decide);
	}
	actions[t->action](t);
}

static void judge(struct lease_operation *t)
{
	struct moment now = moment_now(t);
	struct err e;
	int n = is_rebooted(t) ? decide_rebooted(t, &now, &e) : t->decide(t, &now, &e);

	if (n < 0)
		return over(t, &e);
	if (n == 0)
		return finished(t);
	job_submit(t->reactor, t->owner, &t->job, write_lease, on_written);
}

static void on_observed(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_operation *t = data;
	static const struct node_observation nothing = { .process = PRESENCE_UNKNOWN };

	(void)fd;
	look_at_sandbox(why ? &nothing : &record->observation, &t->look);
	judge(t);
}

static const struct node_call_events observed_events = { .on_done = on_observed };

static int read_journals(struct job *job, struct store *s, struct err *e)
{
	struct lease_operation *t = container_of(job, struct lease_operation, job);
	char exec[WRAPPER_EXEC_SIZE];

	(void)s, (void)e;
	look_at_execs(t->reactor->berthd, &t->sb, t->w.name, &t->groups, &t->look);
	wrapper_exec_id(exec, t->w.name, &t->w.lease.instance);
	if (t->w.lease.instance.generation)
		look_at_work(t->reactor->berthd, t->sb.id, exec, &t->look);
	return 0;
}

static void on_looked(struct job *job)
{
	judge(container_of(job, struct lease_operation, job));
}

static void on_group(void *data, const union node_any *record)
{
	struct lease_operation *t = data;
	const struct node_group_seen *g = &record->group_seen;

	if (g->process == PRESENCE_UNKNOWN)
		t->groups.host = LOOK_FAILED;
	else
		strv_add(g->process == PRESENCE_PRESENT ? &t->groups.full : &t->groups.empty,
			 g->name);
}

static void on_groups(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct lease_operation *t = data;

	(void)record, (void)fd;
	if (why)
		t->groups.host = why->code == ERR_UNSUPPORTED ? LOOK_BLIND : LOOK_FAILED;
	job_submit(t->reactor, t->owner, &t->job, read_journals, on_looked);
}

static const struct node_call_events groups_events = { on_group, on_groups };

/* After the lease was read, and never before. */
static void on_read(struct job *job)
{
	struct lease_operation *t = container_of(job, struct lease_operation, job);
	struct node_target target = { .generation = t->sb.generation };

	if (job->failed)
		return over(t, &job->e);
	look_groups_done(&t->groups);
	if (t->w.unreadable && t->in_turn)
		tell_alert(t);
	if (t->sb.state == SANDBOX_READY) {
		t->groups.host = LOOK_SEEN;
		return ask_group(t, GROUP_LOOK, "", &groups_events);
	}
	memcpy(target.request, t->request, sizeof(target.request));
	memcpy(target.sandbox, t->sb.id, sizeof(target.sandbox));
	node_call(&t->reactor->node, NODE_OBSERVE, &target, -1, &observed_events, t);
}

/* ---- beginning ---- */

static void on_turn(struct turn *turn)
{
	struct lease_operation *t = container_of(turn, struct lease_operation, turn);

	lease_op_again(t, t->decide);
}

static void prepare(struct lease_operation *t, lease_op_decide_fn *decide, lease_op_fn *done)
{
	t->decide = decide;
	t->done = done;
	t->in_turn = true;
	t->turn = (struct turn){ .reactor = t->reactor, .come = on_turn };
	snprintf(t->turn.key, sizeof(t->turn.key), "%s %s", t->w.sandbox, t->w.name);
}

void lease_op_begin(struct lease_operation *t, lease_op_decide_fn *decide, lease_op_fn *done)
{
	prepare(t, decide, done);
	turn_take(t->reactor->berthd->name_locks, &t->turn);
}

bool lease_op_try(struct lease_operation *t, lease_op_decide_fn *decide, lease_op_fn *done)
{
	prepare(t, decide, done);
	t->in_turn = turn_try(t->reactor->berthd->name_locks, &t->turn);
	return t->in_turn;
}

void lease_op_beside(struct lease_operation *t, lease_op_decide_fn *decide, lease_op_fn *done)
{
	t->done = done;
	lease_op_again(t, decide);
}

#include "berthd/exec/kill-all.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/leftovers.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"

struct killing {
	struct kill_all ask;
	size_t left;
	struct kill_result result;
	bool failed;
	struct err e;
	kill_all_fn done;
	void *data;
};

static void fail(struct killing *k, const struct err *why)
{
	k->failed = true;
	k->e = *why;
}

static void killing_end(struct killing *k)
{
	if (--k->left > 0)
		return;
	if (!k->failed)
		crash_point("exec.killed");
	k->done(k->data, &k->result, k->failed ? &k->e : NULL);
	free(k);
}

/* ---- which ---- */

static bool is_any(const struct kill_all *a, const struct journal *j)
{
	(void)a, (void)j;
	return true;
}

static bool is_background(const struct kill_all *a, const struct journal *j)
{
	(void)a;
	return j->head.background;
}

static bool is_of_shell(const struct kill_all *a, const struct journal *j)
{
	return strcmp(j->head.ask.shell, a->name) == 0;
}

static bool is_of_group(const struct kill_all *a, const struct journal *j)
{
	return strcmp(j->head.group, a->name) == 0;
}

static bool (*const has[KILL_SCOPE_COUNT])(const struct kill_all *a, const struct journal *j) = {
	[KILL_SCOPE_ALL] = is_any,
	[KILL_SCOPE_BACKGROUND] = is_background,
	[KILL_SCOPE_SHELL] = is_of_shell,
	[KILL_SCOPE_GROUP] = is_of_group,
};

static bool is_in_scope(const struct kill_all *a, const struct journal *j)
{
	const char *owner = a->by.owner;

	return (!owner || strcmp(owner, j->head.owner) == 0) && has[a->scope](a, j);
}

struct counting {
	const struct kill_all *ask;
	size_t count;
};

static void count_one(void *data, struct journal *j)
{
	struct counting *c = data;

	c->count += is_in_scope(c->ask, j);
}

size_t kill_all_count(const struct kill_all *a)
{
	struct counting c = { .ask = a };

	journals_running(a->by.reactor->berthd->journals, a->sandbox, count_one, &c);
	return c.count;
}

/* ---- what is done to them ---- */

static void on_leftovers(void *data, uint64_t killed, const struct err *why)
{
	struct killing *k = data;

	k->result.leftovers += killed;
	if (why)
		fail(k, why);
	killing_end(k);
}

static void kill_leftovers(struct killing *k, const char *exec)
{
	const struct caller *by = &k->ask.by;
	struct init_dial_ask way = { by->reactor, by->request, by->owner, k->ask.sandbox, true };

	k->left++;
	leftovers_kill(&way, exec, on_leftovers, k);
}

/* With all it had started: what ended it otherwise may have left something. */
static bool tree_was_killed(struct journal *j)
{
	struct journal_view v;

	journal_look(j, &v);
	return v.slot.exit.signum == SIGKILL &&
	       (v.slot.exit.kind == EXEC_KILLED || v.slot.exit.kind == EXEC_TIMED_OUT);
}

/* One of them. */
struct target {
	struct killing *killing;
	struct journal *journal;
};

static void on_killed(void *data, const struct err *why)
{
	struct target *t = data;
	struct killing *k = t->killing;
	bool to_the_end = k->ask.spec.signum == SIGKILL || k->ask.spec.grace_ms > 0;

	if (why) {
		fail(k, why);
	} else {
		k->result.killed++;
		if (to_the_end && !tree_was_killed(t->journal))
			kill_leftovers(k, t->journal->head.ask.id);
	}
	journal_unref(t->journal);
	free(t);
	killing_end(k);
}

static void kill_one(struct killing *k, struct journal *j)
{
	struct target *t = xcalloc(1, sizeof(*t));

	*t = (struct target){ k, journal_ref(j) };
	k->left++;
	exec_kill(k->ask.by.reactor, j, &k->ask.spec, on_killed, t);
}

static bool is_running(struct journal *j)
{
	struct journal_glance now;

	journal_glance(j, &now);
	return now.state == JOURNAL_RUNNING;
}

static void kill_in_scope(void *data, struct journal *j)
{
	struct killing *k = data;

	if (is_running(j) && is_in_scope(&k->ask, j))
		kill_one(k, j);
}

/*
 * What ended ones left is killed with the scope `all`. With others it is only asked whether
 * what init has lost sight of is gone: before that no number is true.
 */
static const char *left_by(const struct kill_all *a)
{
	if (a->one)
		return a->one->head.ask.id;
	return a->scope == KILL_SCOPE_ALL ? "" : EXEC_ID_NONE;
}

void kill_all_begin(const struct kill_all *a, kill_all_fn done, void *data)
{
	bool kill = a->spec.signum == SIGKILL, running = a->one && is_running(a->one);
	struct killing *k = xcalloc(1, sizeof(*k));

	k->ask = *a;
	k->done = done;
	k->data = data;
	k->left = 1; /* until all are sent the signal */
	if (!a->one)
		journals_running(a->by.reactor->berthd->journals, a->sandbox, kill_in_scope, k);
	else if (running)
		kill_one(k, a->one);
	if (kill && !(a->one && running))
		kill_leftovers(k, left_by(a));
	killing_end(k);
}

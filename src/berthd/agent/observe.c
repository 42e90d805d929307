#include "berthd/agent/observe.h"

#include <string.h>

#include "berthd/journal/journal.h"

const char *wrapper_seen_name(enum wrapper_seen s)
{
	static const char *const names[] = {
		[WRAPPER_UNKNOWN] = "unknown",
		[WRAPPER_ABSENT] = "absent",
		[WRAPPER_PRESENT] = "present",
	};

	return names[s];
}

const char *look_evidence_name(enum look_evidence e)
{
	return e == EVIDENCE_HOST ? "host" : "init";
}

void look_groups_done(struct look_groups *g)
{
	strv_done(&g->full);
	strv_done(&g->empty);
	*g = (struct look_groups){ 0 };
}

void look_done(struct look *l)
{
	strv_done(&l->running);
	strv_done(&l->groups);
	strv_done(&l->all);
	*l = (struct look){ 0 };
}

static bool has(const struct strv *v, const char *word)
{
	for (size_t i = 0; i < v->len; i++)
		if (strcmp(v->items[i], word) == 0)
			return true;
	return false;
}

struct looking {
	struct journals *journals;
	const struct sandbox *sb;
	const char *name;
	const struct look_groups *groups;
	struct look *look;
	bool doubt;
};

/*
 * One that is to be held runs nothing before it has entered its cgroup. Its record is written, no
 * start is in it, and the host saw no such cgroup: it was never let go.
 */
static bool never_ran(const struct looking *l, const struct journal *j,
		      const struct journal_view *v)
{
	return l->groups->host == LOOK_SEEN && j->head.ask.flags & EXEC_HOLD &&
	       v->slot.state != JOURNAL_RUNNING && v->slot.pid == 0;
}

/* By its journal: what init said of it. */
static enum wrapper_seen told_of(struct looking *l, const char *exec, bool *runs)
{
	enum wrapper_seen seen = WRAPPER_ABSENT;
	struct journal_view v;
	struct journal *j;
	struct err e;
	bool here;

	*runs = false;
	if (journal_find(l->journals, l->sb->id, exec, &j, &e) < 0)
		return e.code == ERR_NOT_FOUND ? WRAPPER_ABSENT : WRAPPER_UNKNOWN;
	journal_look(j, &v);
	here = j->head.generation == l->sb->generation; /* else: it was started anew, elsewhere */
	*runs = here && v.slot.state == JOURNAL_RUNNING;
	if (here && !v.slot.gone && !never_ran(l, j, &v))
		seen = *runs ? WRAPPER_PRESENT : WRAPPER_UNKNOWN;
	journal_unref(j);
	return seen;
}

/* Present. Of one that berthd hears no more only its end is wanted: it counts as no instance. */
static void add_present(struct look *look, const char *exec, const struct instance *i, bool runs)
{
	struct wrapper_observation *o = &look->seen;

	o->count++;
	o->instance = runs ? *i : (struct instance){ 0 };
	if (runs)
		strv_add(&look->running, exec);
}

static enum wrapper_seen seen_of(struct looking *l, const char *exec, bool *runs)
{
	enum wrapper_seen told = told_of(l, exec, runs);

	if (has(&l->groups->full, exec))
		return WRAPPER_PRESENT;
	if (has(&l->groups->empty, exec))
		return WRAPPER_ABSENT;
	if (told != WRAPPER_ABSENT)
		l->look->evidence = EVIDENCE_INIT;
	return told;
}

static int look_at_one(void *data, const char *sandbox, const char *exec)
{
	struct looking *l = data;
	struct wrapper_observation *o = &l->look->seen;
	struct instance i;
	enum wrapper_seen seen;
	bool runs;

	(void)sandbox;
	if (!wrapper_exec_read(exec, l->name, &i))
		return 0;
	strv_add(&l->look->all, exec);
	seen = seen_of(l, exec, &runs);
	if (seen == WRAPPER_ABSENT)
		return 0;
	if (i.generation > o->max_generation)
		o->max_generation = i.generation;
	if (seen == WRAPPER_UNKNOWN)
		l->doubt = true;
	else
		add_present(l->look, exec, &i, runs);
	return 0;
}

/* Those that have no journal are there as well. */
static void look_at_groups(struct looking *l)
{
	struct wrapper_observation *o = &l->look->seen;
	struct instance i;

	for (size_t n = 0; n < l->groups->full.len; n++) {
		const char *exec = l->groups->full.items[n];

		if (!wrapper_exec_read(exec, l->name, &i))
			continue;
		strv_add(&l->look->groups, exec);
		if (has(&l->look->all, exec))
			continue;
		if (i.generation > o->max_generation)
			o->max_generation = i.generation;
		add_present(l->look, exec, &i, false);
	}
}

void look_at_execs(struct berthd *b, const struct sandbox *sb, const char *name,
		   const struct look_groups *groups, struct look *ret)
{
	struct looking l = { b->journals, sb, name, groups, ret, groups->host == LOOK_FAILED };
	struct wrapper_observation *o = &ret->seen;

	look_done(ret);
	ret->evidence = groups->host == LOOK_BLIND ? EVIDENCE_INIT : EVIDENCE_HOST;
	if (journals_each(b->journals, sb->id, look_at_one, &l) < 0)
		l.doubt = true;
	look_at_groups(&l);
	if (o->count > 0) /* in doubt about another one, it is not alone */
		o->count += l.doubt, o->seen = WRAPPER_PRESENT;
	else
		o->seen = l.doubt ? WRAPPER_UNKNOWN : WRAPPER_ABSENT;
}

void look_at_work(struct berthd *b, const char *sandbox, const char *exec, struct look *ret)
{
	struct journal_view v;
	struct journal *j;
	struct err ignored;

	if (journal_find(b->journals, sandbox, exec, &j, &ignored) < 0)
		return;
	journal_look(j, &v);
	ret->work = v.slot.work;
	ret->silent_ms = journal_silent_ms(j);
	journal_unref(j);
}

void look_note_work(struct berthd *b, const char *sandbox, const char *exec,
		    enum journal_work work)
{
	struct journal *j;
	struct err ignored;

	if (journal_find(b->journals, sandbox, exec, &j, &ignored) < 0)
		return;
	journal_work(j, work);
	journal_unref(j);
}

void look_at_sandbox(const struct node_observation *o, struct look *ret)
{
	look_done(ret);
	ret->evidence = EVIDENCE_HOST;
	ret->seen.seen = o->process == PRESENCE_ABSENT ? WRAPPER_ABSENT : WRAPPER_UNKNOWN;
}

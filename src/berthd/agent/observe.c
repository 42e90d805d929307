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

void look_done(struct look *l)
{
	strv_done(&l->running);
	*l = (struct look){ 0 };
}

struct looking {
	struct journals *journals;
	const struct sandbox *sb;
	const char *name;
	struct look *look;
	bool doubt;
};

static enum wrapper_seen seen_of(struct looking *l, const char *exec)
{
	enum wrapper_seen seen = WRAPPER_ABSENT;
	struct journal_view v;
	struct journal *j;
	struct err e;

	if (journal_find(l->journals, l->sb->id, exec, &j, &e) < 0)
		return e.code == ERR_NOT_FOUND ? WRAPPER_ABSENT : WRAPPER_UNKNOWN;
	journal_look(j, &v);
	if (j->head.generation != l->sb->generation)
		seen = WRAPPER_ABSENT; /* its sandbox was started anew, elsewhere */
	else if (!v.slot.gone)
		seen = v.slot.state == JOURNAL_RUNNING ? WRAPPER_PRESENT : WRAPPER_UNKNOWN;
	journal_unref(j);
	return seen;
}

static int look_at_one(void *data, const char *sandbox, const char *exec)
{
	struct looking *l = data;
	struct wrapper_observation *o = &l->look->seen;
	struct instance i;
	enum wrapper_seen seen;

	(void)sandbox;
	if (!wrapper_exec_read(exec, l->name, &i))
		return 0;
	seen = seen_of(l, exec);
	if (seen == WRAPPER_ABSENT)
		return 0;
	if (i.generation > o->max_generation)
		o->max_generation = i.generation;
	if (seen == WRAPPER_UNKNOWN) {
		l->doubt = true;
		return 0;
	}
	o->count++;
	o->instance = i;
	strv_add(&l->look->running, exec);
	return 0;
}

void look_at_execs(struct berthd *b, const struct sandbox *sb, const char *name,
		   struct look *ret)
{
	struct looking l = { b->journals, sb, name, ret, false };
	struct wrapper_observation *o = &ret->seen;

	look_done(ret);
	if (journals_each(b->journals, sb->id, look_at_one, &l) < 0)
		l.doubt = true;
	if (o->count > 0) /* in doubt about another one, it is not alone */
		o->count += l.doubt, o->seen = WRAPPER_PRESENT;
	else
		o->seen = l.doubt ? WRAPPER_UNKNOWN : WRAPPER_ABSENT;
}

void look_at_sandbox(const struct node_observation *o, struct look *ret)
{
	look_done(ret);
	ret->seen.seen = o->process == PRESENCE_ABSENT ? WRAPPER_ABSENT : WRAPPER_UNKNOWN;
}

static int add_exec(void *data, const char *sandbox, const char *exec)
{
	(void)sandbox;
	if (wrapper_exec_is(exec))
		strv_add(data, exec);
	return 0;
}

void look_for_execs(struct berthd *b, const char *sandbox, struct strv *ret)
{
	journals_each(b->journals, sandbox, add_exec, ret);
}

void look_none_left(struct berthd *b, const char *sandbox, const struct strv *execs)
{
	for (size_t i = 0; i < execs->len; i++) {
		struct journal *j;
		struct err ignored;

		if (journal_find(b->journals, sandbox, execs->items[i], &j, &ignored) < 0)
			continue;
		journal_gone(j);
		journal_unref(j);
	}
}

#include "berthd/control/check/unleased.h"

#include <string.h>

#include "berthd/journal/journal.h"
#include "lib/str.h"

struct search {
	const struct sandbox *sb;
	struct strv running;
};

static bool runs(struct journal *j, const struct sandbox *sb)
{
	struct journal_view v;

	journal_look(j, &v);
	return v.slot.state == JOURNAL_RUNNING && !v.slot.gone &&
	       j->head.generation == sb->generation;
}

static void add_one(void *data, struct journal *j)
{
	struct search *f = data;

	if (wrapper_exec_is(j->head.ask.id) && runs(j, f->sb))
		strv_add(&f->running, j->head.ask.id);
}

/* A lease goes to another only when nothing runs: who still does, after it was read, is not its. */
static bool still_runs(struct berthd *b, const struct sandbox *sb, const char *exec)
{
	struct journal *j;
	struct err ignored;
	bool does;

	if (journal_find(b->journals, sb->id, exec, &j, &ignored) < 0)
		return false;
	does = runs(j, sb);
	journal_unref(j);
	return does;
}

static int read_lease(struct store *s, const struct sandbox *sb, const char *exec,
		      struct wrapper *ret, struct err *e)
{
	const char *name = strchr(exec, '.') + 1;
	char text[WRAPPER_NAME_SIZE];

	*ret = (struct wrapper){ 0 };
	lease_init(&ret->lease);
	if (!str_copy_bytes(text, sizeof(text), name, strcspn(name, ".")))
		return 0; /* no lease has such a name */
	if (store_wrapper_get(s, sb->id, text, ret, e) < 0 && e->code != ERR_NOT_FOUND)
		return -1;
	return 0;
}

static bool names(const struct wrapper *w, const char *exec)
{
	char own[WRAPPER_EXEC_SIZE];

	if (w->lease.stop.state != STOP_NONE)
		return true;
	wrapper_exec_id(own, w->name, &w->lease.instance);
	return strcmp(own, exec) == 0;
}

static int find(struct berthd *b, struct store *s, const struct search *f, struct unleased *ret,
		struct err *e)
{
	for (size_t i = 0; i < f->running.len; i++) {
		const char *exec = f->running.items[i];

		if (read_lease(s, f->sb, exec, &ret->lease, e) < 0)
			return -1;
		if (!names(&ret->lease, exec) && still_runs(b, f->sb, exec))
			return str_copy(ret->exec, sizeof(ret->exec), exec);
	}
	return 0;
}

int check_unleased(struct berthd *b, struct store *s, const struct sandbox *sb,
		   struct unleased *ret, struct err *e)
{
	struct search f = { .sb = sb };
	int n;

	journals_running(b->journals, sb->id, add_one, &f);
	n = find(b, s, &f, ret, e);
	strv_done(&f.running);
	return n;
}

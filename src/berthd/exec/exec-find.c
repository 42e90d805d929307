#include "berthd/exec/exec-find.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "store/sandbox.h"

#define OWNER_LOOKS 16 /* a sandbox has one owner: a few of its journals say whose it is */

int exec_find(const struct caller *by, const char *sandbox, const char *id, struct journal **ret,
	      struct err *e)
{
	struct journal *j;

	if (journal_find(by->reactor->berthd->journals, sandbox, id, &j, e) < 0)
		return -1;
	if (by->owner && strcmp(by->owner, j->head.owner) != 0) {
		journal_unref(j);
		err_set(e, ERR_NOT_FOUND, "there is no exec %s in %s", id, sandbox);
		return err_fix(e, "'berth execs %s' lists its commands.", sandbox);
	}
	*ret = j;
	return 0;
}

struct journal *exec_try(const struct caller *by, const char *sandbox, const char *id)
{
	struct journal *j = NULL;
	struct err ignored;

	return exec_find(by, sandbox, id, &j, &ignored) < 0 ? NULL : j;
}

struct names {
	struct strv *ids;
	const char *after;
};

static int add_name(void *data, const char *sandbox, const char *id)
{
	struct names *n = data;

	(void)sandbox;
	if (strcmp(id, n->after) > 0)
		strv_add(n->ids, id);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int exec_ids(const struct caller *by, struct store *s, const char *sandbox, const char *after,
	     struct strv *ret, struct err *e)
{
	struct names names = { ret, after };
	struct journal *own = NULL;
	struct sandbox sb;

	if (sandbox_id_check(sandbox, e) < 0)
		return -1;
	journals_each(by->reactor->berthd->journals, sandbox, add_name, &names);
	if (ret->len > 0)
		qsort(ret->items, ret->len, sizeof(char *), by_name);
	for (size_t i = 0; i < ret->len && i < OWNER_LOOKS && !own; i++)
		own = exec_try(by, sandbox, ret->items[i]);
	if (!own)
		return store_sandbox_get(s, by->owner, sandbox, &sb, e);
	journal_unref(own);
	return 0;
}

bool exec_has_ended(struct journal *j)
{
	struct journal_view v;

	journal_look(j, &v);
	return v.slot.state != JOURNAL_RUNNING;
}

bool exec_forget(struct journal *j)
{
	bool can = exec_has_ended(j) && !journal_is_doubt(j);

	if (can)
		journal_remove(j);
	return can;
}

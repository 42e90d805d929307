#include "berthd/journal/gone.h"

#include "core/wrapper.h"

static int add_exec(void *data, const char *sandbox, const char *exec)
{
	(void)sandbox;
	if (wrapper_exec_is(exec))
		strv_add(data, exec);
	return 0;
}

void journals_wrappers(struct journals *js, const char *sandbox, struct strv *ret)
{
	journals_each(js, sandbox, add_exec, ret);
}

void journals_mark_gone(struct journals *js, const char *sandbox, const struct strv *execs)
{
	for (size_t i = 0; i < execs->len; i++) {
		struct journal *j;
		struct err ignored;

		if (journal_find(js, sandbox, execs->items[i], &j, &ignored) < 0)
			continue;
		journal_gone(j);
		journal_unref(j);
	}
}

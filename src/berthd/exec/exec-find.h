/* The execs of a sandbox that a caller may see: by their journals, also after it is gone. */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/caller.h"
#include "lib/str.h"
#include "store/store.h"

/* The result is held. */
must_check int exec_find(const struct caller *by, const char *sandbox, const char *id,
			 struct journal **ret, struct err *e);
/* The same, or NULL. */
struct journal *exec_try(const struct caller *by, const char *sandbox, const char *id);

/*
 * On a worker: the ids behind `after`, sorted, of a sandbox that the caller may see, or could
 * while it was there.
 */
must_check int exec_ids(const struct caller *by, struct store *s, const char *sandbox,
			const char *after, struct strv *ret, struct err *e);

bool exec_has_ended(struct journal *j);
bool exec_forget(struct journal *j); /* its journal goes; false: it runs, or may */

/* Wrappers' execs whose end was seen from outside: their journals say so. All on a worker. */
#pragma once

#include "berthd/journal/journal.h"

/* The execs of all wrappers that a sandbox ever had. */
void journals_wrappers(struct journals *js, const char *sandbox, struct strv *ret);

/* Of these it was seen that nothing is left. */
void journals_mark_gone(struct journals *js, const char *sandbox, const struct strv *execs);

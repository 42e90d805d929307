/*
 * All journals of the host together have a limit: past it, of the owner that holds
 * most, the oldest that have ended are removed, on a worker, from time to time.
 * What runs is never touched, and counts to its owner: an owner that holds no more
 * than its fair share of the limit loses nothing, however much others run.
 */
#pragma once

#include "berthd/journal/journal.h"

struct reactor;
struct journal_expire;

struct journal_expire *journal_expire_begin(struct reactor *r);
void journal_expire_end(struct journal_expire *t);

/* Now. How many were removed. */
size_t journals_trim(struct journals *js, uint64_t limit);

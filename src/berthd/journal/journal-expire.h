/*
 * All journals of the host together have a limit: past it, of the owner that holds
 * most, the oldest that have ended are removed, on a worker, from time to time and
 * when they grow fast. What runs is never removed, and counts to its owner: an owner
 * that holds no more than its fair share of the limit loses nothing, however much
 * others run. If that is not enough, what runs of those past their share records no
 * more: as past the cap of one exec, the rest is counted. One that said nothing meanwhile records
 * again as soon as its owner is within its share.
 */
#pragma once

#include "berthd/journal/journal.h"

struct reactor;
struct journal_expire;

struct journal_expire *journal_expire_begin(struct reactor *r);
void journal_expire_end(struct journal_expire *t);

/* So long after the last time, with so much more since: is it time? */
must_check bool journals_trim_due(uint64_t ms, uint64_t grown, uint64_t limit);

/* Now. How many were removed. */
size_t journals_trim(struct journals *js, uint64_t limit);

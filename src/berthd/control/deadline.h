/*
 * A record at rest whose alarm rang: what is due of it is done, or the alarm is
 * set anew because it was used meanwhile. core/alarm decides.
 */
#pragma once

#include "berthd/control/transition.h"

/* c->sb as it was read; of another version nothing is done. */
void deadline_fire(struct transition *c, transition_fn *done);

/* At the record's time, which is the database's. */
struct alarm_rules deadline_rules_of(const struct transition *c);

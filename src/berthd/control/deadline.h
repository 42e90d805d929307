/*
 * A record at rest whose alarm rang: what is due of it is done, or the alarm is
 * set anew because it was used meanwhile. core/alarm decides.
 */
#pragma once

#include "berthd/control/transition.h"

/* c->sb as it was read; of another version nothing is done. */
void alarm_ring(struct change *c, change_fn *done);

struct alarm_rules alarm_rules_of(const struct berthd *b);

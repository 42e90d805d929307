/*
 * Waking: a sandbox that sleeps has its disk and no processes. Whatever uses it wakes it; its
 * record says which of both is under way, and goes on after a crash.
 */
#pragma once

#include "berthd/control/wait-stable.h"

/*
 * Have it run, whatever it is in: wait for what is under way, wake what sleeps.
 * EV_USE or EV_WAKE; only the latter also starts one that failed. Ends with the
 * record of one that is ready, or with why it is not.
 */
void control_wake(const struct wait_stable *how, enum sandbox_event ev);

/* States out of which control_wake() may lead. */
bool wake_leads_out_of(enum sandbox_state s);

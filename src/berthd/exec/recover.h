/*
 * What berthd does about journals beside writing them: at its start it goes on
 * with those that have no end yet; from time to time it removes the oldest that
 * have one, if all together are too much.
 */
#pragma once

#include "berthd/runtime/berthd.h"

void execs_recover(struct berthd *b);

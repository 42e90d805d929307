/*
 * When sandboxes were used, written down: not with each command, but all at
 * once every two seconds. Until then it is known to this berthd alone; the alarms
 * of one that comes after it allow for that: core/alarm.h.
 */
#pragma once

#include "berthd/runtime/reactor.h"

struct last_used;

struct last_used *last_used_begin(struct reactor *r);
void last_used_end(struct last_used *u);

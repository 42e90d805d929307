/*
 * When sandboxes were used, written down: not with each command, but all at
 * once every two seconds. Until then it is known to this berthd alone, and the
 * alarms allow for that.
 */
#pragma once

#include "berthd/runtime/reactor.h"

struct uses;

struct uses *uses_begin(struct reactor *r);
void uses_end(struct uses *u);

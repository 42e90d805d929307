/* What is measured and compared once a second: one timer for all of it, on the first reactor. */
#pragma once

#include "berthd/runtime/reactor.h"

struct tick;

struct tick *tick_begin(struct reactor *r);
void tick_end(struct tick *t);

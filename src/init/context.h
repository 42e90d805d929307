/*
 * Code contexts. The process of the first run in a context becomes its holder:
 * it starts the interpreter, takes one run after the other, and lives as long
 * as the interpreter does. Later runs are handed over to it, through pid 1
 * (init/handover.h).
 */
#pragma once

#include "init/hub.h"
#include "init/peer.h"

void context_serve(struct peer *p, const struct frame *request, struct hub *hub);
bool context_is_end(const struct frame *request); /* and not a run */

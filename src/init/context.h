/*
 * Code contexts. The process of the first run in a context becomes its holder:
 * it starts the interpreter, takes one run after the other, and lives as long
 * as the interpreter does. Later runs are handed over to it, through pid 1
 * (init/handover.h).
 */
#pragma once

#include "init/frame-conn.h"
#include "init/pid1-broker.h"

void context_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);
bool context_is_end(const struct frame *request); /* and not a run */

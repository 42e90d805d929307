/*
 * Records and facts, brought together: whenever berth-node is reached (after
 * either daemon was restarted), and for every record whose deadline passed.
 * Runs on the first reactor.
 */
#pragma once

#include "api/reactor.h"

struct reconcile;

struct reconcile *reconcile_begin(struct reactor *r);
void reconcile_end(struct reconcile *rc);

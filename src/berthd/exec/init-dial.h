/*
 * The way to a sandbox's init: from the name a request gives to a connection.
 *
 * Who asks must own it, it must be in a state in which it can be used, and
 * berth-node must have its generation running; each of these fails with a
 * sentence of its own. Normally no database is on this way.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "core/sandbox.h"
#include "proto/node.h"

struct init_dial_ask {
	struct reactor *reactor;
	const char *request; /* the request's id, for the logs */
	const char *owner;   /* NULL: an admin, who may use all */
	const char *sandbox;
	bool only_awake; /* to look after something in it: what sleeps has nothing, and sleeps on */
};

struct init_dial {
	int fd; /* the callee's to take */
	char sandbox[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	uint64_t generation;
	struct node_usage before; /* what had been used before anything is asked of it */
};

typedef void (*init_dial_fn)(void *data, struct init_dial *way, const struct err *why);

/* `done` is called once, maybe before this returns: make it the last thing you do. */
void init_dial_find(const struct init_dial_ask *ask, init_dial_fn done, void *data);

/*
 * A lifetime that is renewed as long as this process lives: what it made for itself is deleted
 * by the server soon after it was killed, however it was killed.
 */
#pragma once

#include <sys/types.h>

#include "cli/command.h"

#define KEEPER_LIFETIME_MS 300000 /* of a sandbox that is not renewed any more */

struct keeper {
	pid_t pid; /* 0: none */
};

/* Renew the sandbox's lifetime from now on, in a process that ends with this one. */
must_check int keeper_begin(struct keeper *k, const struct context *c, const char *sandbox,
			    uint64_t lifetime_ms, struct err *e);
void keeper_end(struct keeper *k); /* for cleanup() */

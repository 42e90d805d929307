/*
 * Things of the host laid out to be found from inside a sandbox: a process in there that can
 * read the token, or changes the directory, was outside. Every process on the host may: only the
 * box is in the way.
 */
#pragma once

#include <sys/types.h>

#include "lib/err.h"
#include "lib/id.h"
#include "lib/strv.h"

struct canary {
	char id[ID_RANDOM_CHARS + 1]; /* all is named after it: a later sweep finds it */
	char token[40];
	char dir[64];  /* open to all */
	int lock;      /* on it, for as long as we live */
	char file[80]; /* in it, with the token */
	uint16_t port; /* TCP and UDP on all addresses; a client is told the token */
	pid_t server;  /* that answers there, and on the abstract socket named by the token */
	int key;       /* of System V memory and a queue */
	struct strv addresses;
};

must_check int canary_open(struct canary *c, struct err *e);
void canary_close(struct canary *c); /* a zeroed one is fine */

/*
 * What was laid out by a process that was killed is removed, after `clear` has removed the rest
 * that was named after the same id; if that fails it stays, for the next time.
 */
typedef int canary_fn(void *arg, const char *id, struct err *e);
must_check int canary_sweep(canary_fn *clear, void *arg, struct err *e);

/* True if no other process has changed the directory; else what is there. */
must_check bool canary_untouched(const struct canary *c, char *found, size_t size);

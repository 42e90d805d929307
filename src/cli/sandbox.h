/* A sandbox as the command line sees it: made and deleted. */
#pragma once

#include "cli/client.h"
#include "cli/interrupt.h"

#define SANDBOX_ID_SIZE 128

struct sandbox_options {
	const char *runtime;
	uint64_t memory, disk; /* bytes; 0: the server's default, as in all of them */
	uint64_t cpu_milli;
	uint64_t pids;
	const char *name, *profile;
	struct strv labels; /* NAME=VALUE */
	struct strv allow;  /* HOST or HOST:PORT,PORT */
};

/* A first interrupt lets it finish, so that its id is known; a second gives up. */
must_check int sandbox_create(const struct context *c, const char *image,
			      const struct sandbox_options *o, struct interrupt *stop,
			      char id[SANDBOX_ID_SIZE], struct err *e);

/* Gone already is fine. Says so if the proof of absence is still missing. */
must_check int sandbox_delete(const struct context *c, const char *id, struct err *e);

/*
 * What an exec said, by its id and from any position on: read from the server as events, also
 * after it ended, after the server was restarted and after the sandbox is gone.
 */
#pragma once

#include "cli/client.h"
#include "cli/sse.h"
#include "proto/exec.h"

#define FOLLOW_AGAIN_MAX 120 /* attempts to go on, */
#define FOLLOW_AGAIN_MS  500 /* one after the other, while the server is not there */

struct follow {
	const char *sandbox, *exec;
	bool on; /* until it ends, and not only what there is */

	/* A few times a second; true: stop. May be NULL. */
	bool (*tick)(void *arg, uint64_t unneeded);

	/* What it said; NULL: written as it is. */
	int (*put)(void *arg, int fd, struct bytes b, struct err *e);
	void *arg; /* for both */

	uint64_t position; /* to go on from */
	bool heard;        /* something came in the last attempt */
	bool broke;        /* the server went away in the middle of its answer */
	bool failed;       /* it could not be written; and not: could not be heard */
	bool ended;        /* `exit` is how */
	struct exec_exit exit;
	struct sse sse;
};

/* One attempt. -1 says nothing about the exec; ERR_BUSY: the server is not there. */
must_check int follow_once(struct follow *f, const struct context *c, struct err *e);
void follow_done(struct follow *f);

void follow_pause(void); /* between two attempts: a server that comes back does not say so */

/*
 * A persistent shell of a sandbox, as it travels in frames: what to begin it
 * with, and what it is like now.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"
#include "proto/exec.h"
#include "proto/reader.h"

#define SHELL_NAME_SIZE 63 /* with its NUL; init knows it with a dot in front */

/* Letters, digits and ._-, beginning with a letter or digit. */
must_check int shell_name_check(const char *name, struct err *e);

struct shell_request {
	char name[SHELL_NAME_SIZE];
	char cwd[EXEC_CWD_SIZE];
	struct strv env; /* "name=value", over the image's own */
};

void shell_request_done(struct shell_request *q);
void shell_request_encode(struct buf *out, const struct shell_request *q);

/* `ret` must be zeroed. */
must_check int shell_request_decode(struct bytes wire, struct shell_request *ret, struct err *e);

struct shell_state {
	uint32_t pid;
	uint32_t waiting; /* commands, with the one that runs */
	uint32_t restarts;
	char cwd[EXEC_CWD_SIZE]; /* "" if it cannot be said */
};

void shell_state_encode(struct buf *out, const struct shell_state *s);
must_check int shell_state_decode(struct bytes wire, struct shell_state *ret, struct err *e);

/*
 * One run of code in a context, as it travels in frames.
 *
 * The request names the context; STDIN frames bring the run itself, one line
 * for the runner. How the run ended is told twice: EXITED as for any command
 * (0 if the interpreter lives on), and before it what only a context has.
 */
#pragma once

#include "proto/exec.h"

#define CONTEXT_ID_SIZE 64

enum context_verb {
	CONTEXT_NONE,
	CONTEXT_RUN, /* in the interpreter that is there, or in a new one */
	CONTEXT_END, /* kill it and everything it started */
	CONTEXT_VERB_COUNT
};

enum context_language {
	CONTEXT_UNSET,
	CONTEXT_PYTHON,
	CONTEXT_JAVASCRIPT,
	CONTEXT_TYPESCRIPT,
	CONTEXT_LANGUAGE_COUNT
};
const char *context_language_name(enum context_language language); /* "python" */

/* Also by the names people give them: python3, js, node, ts. CONTEXT_UNSET: none of ours. */
enum context_language context_language_by_name(const char *name);

struct context_request {
	enum context_verb verb;
	enum context_language language;
	char id[CONTEXT_ID_SIZE]; /* of the letters an id is made of */
	uint64_t timeout_ms;      /* of this run; 0: none */
	char cwd[EXEC_CWD_SIZE];  /* of the interpreter, like the rest */
	struct strv env;
};

void context_request_done(struct context_request *q);
void context_request_encode(struct buf *out, const struct context_request *q);

/* `ret` must be zeroed. */
must_check int context_request_decode(struct bytes wire, struct context_request *ret,
				      struct err *e);

struct context_run {
	uint32_t number; /* of this run, in this interpreter: from 1 */
	bool fresh;      /* the interpreter was started for it */
	bool done;       /* it said that the run is over, and lives on */
};

void context_run_encode(struct buf *out, const struct context_run *run);
must_check int context_run_decode(struct bytes wire, struct context_run *ret, struct err *e);

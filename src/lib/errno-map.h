/*
 * What the kernel says about a file, as an error with a reason a program can
 * act on: no_such_file, exists, no_space, ...
 */
#pragma once

#include "lib/err.h"

/* -1, like err_set(); the message ends with the kernel's own words. */
int err_file(struct err *e, int errnum, const char *fmt, ...) printf_like(3, 4);

/* The same reason by its name, as it came over a wire. An unknown name is no reason at all. */
void err_file_reason(struct err *e, const char *name);

/* Words for programs that are no file's, and such a word as it came over a wire. */
#define REASON_NO_COMMAND     "no_such_command" /* a command was not started, and why */
#define REASON_CANNOT_RUN     "cannot_run"
#define REASON_OPTIONS_DIFFER "options_differ"    /* a sandbox is there, and is another one */
#define REASON_OTHER_IDENTITY "another_identity"  /* a session is not this user's */
#define REASON_NOT_TAKEN      "input_not_taken"   /* nothing of an exec's input: send it again */
#define REASON_NOT_READY      "not_ready"         /* its sandbox is made or woken: ask again */
#define REASON_UNDER_WAY      "under_way"         /* the first request with this key: ask again */
#define REASON_NOT_REACHED    "not_reached"       /* it runs, and was not taken up again */
#define REASON_HOST_DRAINING  "host_draining"     /* it takes nothing new */
#define REASON_ENGINE_MISSING "engine_missing"    /* no host has what its runtime needs */
#define REASON_LEFT_UNKNOWN   "leftovers_unknown" /* something may run that is not found */
#define REASON_CONNECTION     "connection"        /* no server answers: a client's, not the API's */
void err_word_reason(struct err *e, const char *name);

/* Why a request was refused, where an operator wants to know of it: core/incident.h. */
#define REASON_BAD_KEY       "bad_key"
#define REASON_ROLE_DENIED   "role_denied"
#define REASON_FORGED_PASS   "forged_pass"
#define REASON_REPLAYED_PASS "replayed_pass"
#define REASON_PATH_ESCAPE   "path_escape"
#define REASON_INVALID_PORT  "invalid_port"

/*
 * What a checkout asks for, and what git's own words mean: pure, so that both can
 * be tested without a git, a server or a sandbox.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define GIT_URL_SIZE           2048
#define GIT_REF_SIZE           256
#define GIT_SECRET_SIZE        1024
#define GIT_PATH_SIZE          4096

/* What the script that runs git ends with, besides git's own 1 and 128. */
#define GIT_EXIT_NO_GIT        97
#define GIT_EXIT_TARGET_EXISTS 98

struct git_checkout {
	char url[GIT_URL_SIZE]; /* without credentials, once it was checked */
	char branch[GIT_REF_SIZE];
	char ref[GIT_REF_SIZE];            /* a commit, a tag, refs/pull/7/head */
	char session_branch[GIT_REF_SIZE]; /* to work on: found, tracked or made from the above */
	bool reuse;                        /* a clone of this URL may be at the path already */
	char path[GIT_PATH_SIZE];
	char username[GIT_SECRET_SIZE], password[GIT_SECRET_SIZE];
	int64_t depth, timeout_ms;
};

/*
 * Check it, take credentials out of the URL, and fill in the path: /workspace/REPOSITORY.
 * A password goes over https, or to this very machine.
 */
must_check int git_checkout_check(struct git_checkout *c, struct err *e);

/* "https://host:1": the one server the credentials are for. */
void git_origin(const struct git_checkout *c, char out[GIT_URL_SIZE]);

/* The error that an exit code and these last words mean. Always -1. */
int git_failure(int exit_code, const char *said, struct err *e);
int git_timed_out(const struct git_checkout *c, struct err *e);

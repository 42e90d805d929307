/*
 * Policies: rows that decide, for a new agent session, whether it gets a
 * sandbox of its own, which profile, and which runtime.
 *
 * Each row is about one session, user or org, or about everyone: `*`, which
 * includes callers without an org. A row may leave a column open; it is then
 * decided by the next row. What is named goes before `*`; then session before
 * user before org before global; then the newer row. The choice is stored with
 * the session and never made again.
 */
#pragma once

#include "lib/err.h"

#define POLICY_SUBJECT_SIZE 201
#define POLICY_WORD_SIZE    32

enum policy_scope {
	POLICY_GLOBAL, /* its subject must be "*" */
	POLICY_ORG,
	POLICY_USER,
	POLICY_SESSION,
	POLICY_SCOPE_COUNT
};

/* Zero is open in a row, and never in a choice. */
enum policy_isolation {
	POLICY_ISOLATION_OPEN,
	POLICY_PER_SESSION, /* where no row decides: the stricter one */
	POLICY_SHARED,
	POLICY_ISOLATION_COUNT
};

struct policy {
	uint64_t id; /* newer is greater */
	enum policy_scope scope;
	char subject[POLICY_SUBJECT_SIZE];
	enum policy_isolation isolation;
	char profile[POLICY_WORD_SIZE]; /* empty: open */
	char runtime[POLICY_WORD_SIZE]; /* empty: open */
};

/* The caller; what is NULL or empty it does not have. */
struct policy_caller {
	const char *org;
	const char *user;
	const char *session;
};

struct policy_choice {
	enum policy_isolation isolation;
	char profile[POLICY_WORD_SIZE];
	char runtime[POLICY_WORD_SIZE]; /* empty: the host's default */
	uint64_t policy_id;             /* that decided the isolation; 0: none did */
};

#define POLICY_PROFILE_OWN    "small"    /* of a sandbox of its own, if no row names one */
#define POLICY_PROFILE_SHARED "standard" /* of a shared one */

/* A row that can never apply, or says nothing, is ERR_INVALID. */
must_check int policy_check(const struct policy *p, struct err *e);

/* The rows may come in any order. */
struct policy_choice policy_choose(const struct policy *rows, size_t n,
				   const struct policy_caller *caller);

const char *policy_scope_name(enum policy_scope s);
const char *policy_isolation_name(enum policy_isolation i);
must_check bool policy_scope_by_name(const char *name, enum policy_scope *ret);
must_check bool policy_isolation_by_name(const char *name, enum policy_isolation *ret);

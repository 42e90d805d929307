/*
 * Persistent shells: begun, looked at and ended here; commands go to them as execs do (exec.h).
 *
 * The record of a shell is written before the shell is begun. If the sandbox was
 * started anew meanwhile, the shell is begun again from its record when it is next used.
 */
#pragma once

#include "berthd/runtime/caller.h"
#include "lib/hash.h"
#include "lib/str.h"
#include "proto/shell.h"
#include "store/shell.h"

/* Which one. What is pointed at must last until done(). */
struct shell_ask {
	struct caller by;
	const char *sandbox;
	const char *name;
};

struct shell_create {
	struct caller by;
	const char *sandbox;
	char name[SHELL_NAME_SIZE]; /* "": it gets one */
	char cwd[EXEC_CWD_SIZE];
	const struct strv *env;
	char key[HASH_HEX_SIZE], body[HASH_HEX_SIZE]; /* of an Idempotency-Key; or empty */
};

/*
 * Its record, and what it does now (NULL: there is no bash of it); or why not. Once, from the
 * loop.
 */
typedef void (*shell_fn)(void *data, const struct shell_row *row, const struct shell_state *state,
			 const struct err *why);

/* One key makes one shell, and always the same. */
must_check int shell_create(const struct shell_create *c, shell_fn done, void *data,
			    struct err *e);
must_check int shell_get(const struct shell_ask *a, shell_fn done, void *data, struct err *e);
must_check int shell_end(const struct shell_ask *a, shell_fn done, void *data, struct err *e);

/* Each of them in turn, by shell_fn; then done() without a record. `a` names none. */
void shell_list(const struct shell_ask *a, shell_fn each, shell_fn done, void *data);

/*
 * Have it there for a command: begun again if its bash is gone. done() has neither record nor
 * state. It may be called before this returns: make it the last thing you do.
 */
must_check int shell_ensure(const struct shell_ask *a, shell_fn done, void *data, struct err *e);

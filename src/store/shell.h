/* The persistent shells of a sandbox: a name, and what to begin it with. */
#pragma once

#include "core/sandbox.h"
#include "store/store.h"

#define STORE_SHELL_NAME 63 /* with the NUL, as in all of these */
#define STORE_SHELL_CWD  4096
#define STORE_SHELL_ENV  65536
#define STORE_SHELLS_MAX 64 /* of one sandbox */

struct shell_row {
	char name[STORE_SHELL_NAME];
	char cwd[STORE_SHELL_CWD];
	char env[STORE_SHELL_ENV]; /* {"env":{...}} */
	char made_by[129];         /* hashes of the Idempotency-Key and the body; or "" */
	uint64_t created_ms;
};

/* `*ret` is what is on record afterwards. `*made`: it was not there before. */
must_check int store_shell_add(struct store *s, const char *sandbox, const struct shell_row *row,
			       struct shell_row *ret, bool *made, struct err *e);
must_check int store_shell_get(struct store *s, const char *sandbox, const char *name,
			       struct shell_row *ret, struct err *e);
must_check int store_shell_list(struct store *s, const char *sandbox,
				void (*on_shell)(const struct shell_row *row, void *arg), void *arg,
				struct err *e);
must_check int store_shell_remove(struct store *s, const char *sandbox, const char *name,
				  struct err *e);

/*
 * The records of code contexts. They belong to a sandbox and go with it; who
 * may see the sandbox is decided before.
 */
#pragma once

#include "core/sandbox.h"
#include "store/store.h"

#define CONTEXT_NAME_SIZE     64
#define CONTEXT_LANGUAGE_SIZE 16
#define CONTEXT_PATH_SIZE     4096
#define CONTEXT_ENV_SIZE      32768
#define STORE_CONTEXTS_MAX    256 /* of one sandbox */

struct context_record {
	char id[CONTEXT_NAME_SIZE];
	char sandbox[SANDBOX_ID_SIZE];
	char name[CONTEXT_NAME_SIZE]; /* the id, if it was given none */
	char language[CONTEXT_LANGUAGE_SIZE];
	char cwd[CONTEXT_PATH_SIZE];
	char env[CONTEXT_ENV_SIZE]; /* a JSON object of strings */
	uint64_t timeout_ms;        /* of a run that names none; 0: none */
	uint64_t started;           /* 1: it has had an interpreter */
	uint64_t runs, restarts;
	uint64_t created_ms, last_used_ms;
};

/*
 * 1: it is new. 0: one of this id or name was there, and is what is returned.
 * ERR_NOT_FOUND without the sandbox, ERR_LIMIT if it has too many.
 */
must_check int store_context_insert(struct store *s, const struct context_record *c,
				    struct context_record *ret, struct err *e);

/* By id or name. */
must_check int store_context_get(struct store *s, const char *sandbox, const char *id,
				 struct context_record *ret, struct err *e);

typedef void context_fn(const struct context_record *c, void *arg);
must_check int store_context_list(struct store *s, const char *sandbox, context_fn *on_row,
				  void *arg, struct err *e);

/*
 * A run has begun in it; `fresh`: with a new interpreter. `ret` is the record
 * afterwards, but `started` is what it was before.
 */
must_check int store_context_ran(struct store *s, const char *id, bool fresh,
				 struct context_record *ret, struct err *e);

/* False if there was none. */
must_check int store_context_delete(struct store *s, const char *id, bool *found, struct err *e);

/*
 * The leases of wrappers. They belong to a sandbox and go with it; which owner
 * may see the sandbox is decided before. What a lease becomes is core/lease's to say:
 * this only stores it, and only if no other caller changed it meanwhile.
 */
#pragma once

#include "core/sandbox.h"
#include "core/wrapper.h"
#include "store/store.h"

#define WRAPPER_WHAT_SIZE    65
#define WRAPPER_RECEIPT_SIZE 1001
#define STORE_WRAPPERS_MAX   64 /* of one sandbox */

struct wrapper {
	char sandbox[SANDBOX_ID_SIZE];
	char name[WRAPPER_NAME_SIZE];
	uint64_t version;
	struct lease lease;
	char what[WRAPPER_WHAT_SIZE]; /* the hash of what its instance was asked to run */
	char receipt[WRAPPER_RECEIPT_SIZE];
	struct wrapper_boot boot; /* in which its instance was begun */
	uint64_t created_ms;
	uint64_t read_ms; /* the database's clock when it was read */
	bool unreadable;  /* something of it could not be read, so it is quarantined */
};

/* The record of this name, made if there is none. ERR_NOT_FOUND without the sandbox, ERR_LIMIT. */
must_check int store_wrapper_open(struct store *s, const char *sandbox, const char *name,
				  struct wrapper *ret, struct err *e);
must_check int store_wrapper_get(struct store *s, const char *sandbox, const char *name,
				 struct wrapper *ret, struct err *e);

/* Store w's lease, what, receipt, boot over the version that w was read as; else ERR_CONFLICT. */
must_check int store_wrapper_move(struct store *s, const struct wrapper *w, struct wrapper *ret,
				  struct err *e);

typedef void wrapper_fn(const struct wrapper *w, void *arg);
must_check int store_wrapper_list(struct store *s, const char *sandbox, wrapper_fn *on_row,
				  void *arg, struct err *e);

/*
 * Those of this host's sandboxes whose deadline has passed, the oldest first; with
 * `stopping` also those whose stop attempt is in flight, and those that were begun on this host
 * in another boot. Their deadline is the lease's own: only what is then written moves it.
 */
struct wrapper_due {
	const struct wrapper_boot *boot;
	uint32_t limit;
	bool stopping;
};
must_check int store_wrappers_due(struct store *s, const struct wrapper_due *due,
				  wrapper_fn *on_row, void *arg, struct err *e);

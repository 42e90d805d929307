/*
 * A git checkout: git, run in the sandbox by a script of ours. A password or token reaches it on
 * the script's standard input, from where a credential helper hands it to git by a
 * pipe: it is in no argument, no environment, no file and no journal.
 *
 * It is there whole or not at all: put together beside its place, and what a script that was ended
 * in the middle leaves is removed.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/caller.h"
#include "core/git.h"
#include "proto/reader.h"

struct checkout;

struct checkout_begin {
	const char *sandbox;
	const struct git_checkout *ask;                     /* checked; copied */
	char key[JOURNAL_KEY_SIZE], body[JOURNAL_KEY_SIZE]; /* of an Idempotency-Key; or empty */
};

struct checkout_result {
	const char *path;
	struct bytes commit, branch; /* in the guest's words; an empty repository has none */
};

/* What there is, or why not; then the checkout is over. */
typedef void (*checkout_fn)(void *data, const struct checkout_result *result,
			    const struct err *why);

/*
 * What `by` and `b->sandbox` point at must last until done(), which may be called from here
 * already. *held is the checkout until then.
 */
void checkout_begin(const struct caller *by, const struct checkout_begin *b, checkout_fn done,
		    void *data, void **held);

/* The caller is gone: done() is not called, and git is killed, as any command is. */
void checkout_cancel(struct checkout *k);

/*
 * Code contexts: the record of each, and the interpreter it stands for. Code runs in them by
 * context-run.h.
 *
 * The record is written before the interpreter is started; if it does not start, the record goes.
 * At the end the interpreter's own is seen first, so that a record stays for what may live.
 */
#pragma once

#include "berthd/runtime/caller.h"
#include "lib/str.h"
#include "store/context.h"

/* What `by` and `sandbox` point at must last until done(). */
struct context_create {
	struct caller by;
	const char *sandbox;
	const char *id;       /* "": it gets one. What has it already is the context. */
	const char *language; /* "": python */
	const char *name;     /* "": its id */
	const char *cwd;      /* "": the sandbox's */
	const struct strv *env;
	int64_t timeout_ms; /* of a run in it */
};

/* Its record, and whether it was made for this; or why there is none. Once, from the loop. */
typedef void (*context_done_fn)(void *data, const struct context_record *c, bool made,
				const struct err *why);

must_check int context_create(const struct context_create *c, context_done_fn done, void *data,
			      struct err *e);

/* The one of this name or id: its interpreter is seen gone, and then its record goes. */
void context_end(const struct caller *by, const char *sandbox, const char *name,
		 context_done_fn done, void *data);

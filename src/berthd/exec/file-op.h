/*
 * One operation on a sandbox's files: its init does it, and what comes back goes to a sink.
 *
 * The guest may send anything. What reaches the sink fits the verb: entries, bytes and changes
 * only where it has them, no more entries than were asked for, and an end that lacks nothing.
 */
#pragma once

#include "berthd/runtime/caller.h"
#include "proto/files.h"

struct file_op;

/* What the operation came to. */
struct file_result {
	uint64_t count;                 /* see enum file_verb */
	const struct file_entry *entry; /* the last one; NULL: there was none */
};

/* All but `done` and `failed` may be NULL. Each may close the operation. */
struct file_op_sink {
	void (*opened)(void *data);  /* init has the request, and takes a body from now on */
	void (*drained)(void *data); /* of the body: send on */
	void (*entry)(void *data, const struct file_entry *x);
	void (*change)(void *data, const struct file_change *x);
	bool (*bytes)(void *data, const uint8_t *b, size_t len); /* true: full; file_op_resume() */

	/* The last call of all is one of these. `unsure`: init may have done it all the same. */
	void (*done)(void *data, const struct file_result *result);
	void (*failed)(void *data, const struct err *why, bool unsure);
};

struct file_begin {
	const struct caller *by;
	const char *sandbox;
	const struct file_request *ask;
	const struct file_op_sink *sink;
	void *data; /* the sink's */
};

/* Fails if the request cannot be right. The sink is never called from within. */
must_check int file_op_begin(const struct file_begin *b, struct file_op **ret, struct err *e);

/* Of a write or an unpack: a piece of the body; true: full, wait for drained(). Then all of it. */
bool file_op_send(struct file_op *o, const void *data, size_t len);
void file_op_commit(struct file_op *o);

void file_op_resume(struct file_op *o); /* after bytes() said to wait */

/* Nothing is called after this; init gives up what is not done. NULL is fine. */
void file_op_close(struct file_op *o);

/* Does this verb take a body? Then nothing has happened before file_op_commit(). */
bool file_verb_takes_body(uint32_t verb);

/*
 * What a runner says about a run: one JSON object a line. It comes from within
 * the sandbox, where code of strangers can write it too, so it is read with
 * limits, and only what is known of it is written again.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define NOTE_MAX             (12 * 1024 * 1024) /* bytes of a line */
#define NOTE_TRACEBACK_MAX   2000               /* lines */
#define NOTE_ERROR_NAME_MAX  200                /* bytes */
#define NOTE_NODES_MAX       (2 * 1024 * 1024)  /* values in it, or in a text of it */

/* Of one run. What is more is not read: reading is work of the loop, and others wait for it. */
#define NOTES_MAX            4096
#define NOTES_BYTES_MAX      (64 * 1024 * 1024)
#define NOTE_LATE_ERRORS_MAX 8                 /* past these, because a run's error comes last */
#define NOTE_LATE_ERROR_MAX  (4 * 1024 * 1024) /* bytes of one */

enum note_type {
	NOTE_RESULT,
	NOTE_ERROR,
};

/* What was read of one run. */
struct note_budget {
	size_t notes, bytes, late_errors;
};

/* Is this one to be read? Then it counts. */
must_check bool note_may_be_read(struct note_budget *b, const char *line, size_t len);

/* Appends it as the API shows it, in one line. ERR_INVALID: it is none. */
must_check int note_read(const char *line, size_t len, enum note_type *type, struct buf *out,
			 struct err *e);

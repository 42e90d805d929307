/*
 * What a runner says about a run: one JSON object a line. It comes from within
 * the sandbox, where code of strangers can write it too, so it is read with
 * limits, and only what is known of it is written again.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define NOTE_MAX            (12 * 1024 * 1024) /* bytes of a line */
#define NOTE_TRACEBACK_MAX  2000               /* lines */
#define NOTE_ERROR_NAME_MAX 200                /* bytes */

enum note_type {
	NOTE_RESULT,
	NOTE_ERROR,
};

/* Appends it as the API shows it, in one line. ERR_INVALID: it is none. */
must_check int note_read(const char *line, size_t len, enum note_type *type, struct buf *out,
			 struct err *e);

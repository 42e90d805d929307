/*
 * Structured logs, a line each, on standard error: a JSON object, or "pretty", for a
 * terminal. In both, a byte that could end the line or move a cursor is escaped.
 *
 *   log_event(LOG_INFO, "sandbox ready", "sandbox", id, "request_id", rid, NULL);
 *   {"time":"…","level":"info","msg":"sandbox ready","sandbox":"sb_c1_…","request_id":"…"}
 *   2026-11-16T21:30:37.123Z info berthd: sandbox ready sandbox="sb_c1_…" request_id="…"
 *
 * Only the ends of an error's way log: loop callbacks, request ends, main.
 */
#pragma once

#include "lib/err.h"

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_LEVEL_COUNT
};

#define LOG_WORD_SIZE 8 /* of the settings log_level and log_format */

/* Until log_configure(): up to info, in JSON. */
void log_open(const char *program);

/* Words of a settings file; ERR_INVALID for one that is not known. */
must_check int log_configure(const char *level, const char *format, struct err *e);

/* Then pairs of (const char *name, const char *value), ended by NULL. */
void log_event(enum log_level level, const char *msg, ...) __attribute__((sentinel));

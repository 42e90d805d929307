/*
 * Structured logs: one JSON object a line, on standard error.
 *
 *   log_event("info", "sandbox ready", "sandbox", id, "request_id", rid, NULL);
 *   {"time":"…","level":"info","msg":"sandbox ready","sandbox":"sb_c1_…","request_id":"…"}
 *
 * Only the ends of an error's way log: loop callbacks, request ends, main.
 */
#pragma once

#include "lib/err.h"

enum log_level {
	LOG_ERROR,
	LOG_WARN,
	LOG_INFO,
	LOG_DEBUG
};

void log_open(const char *program, enum log_level up_to);

/* Then pairs of (const char *name, const char *value), ended by NULL. */
void log_event(enum log_level level, const char *msg, ...) __attribute__((sentinel));

/*
 * A client's own name for what it does (`X-Trace-Id`), so that one search finds every line that
 * was logged for it, on every host. It becomes the first part of the request's id, which both
 * daemons log: the rest keeps requests apart that carry the same one.
 */
#pragma once

#include "lib/err.h"

#define TRACE_MAX       64 /* a W3C traceparent, a UUID and `tr_` with its 16 digits fit */
#define TRACE_SEPARATOR '.'

/* ERR_INVALID: it is not 1 to TRACE_MAX letters, digits, '_' and '-'. */
must_check int trace_check(const char *trace, struct err *e);

/* "TRACE.OWN", or OWN alone if `trace` is NULL. False: `size` is too small. */
must_check bool trace_request_id(const char *trace, const char *own, char *out, size_t size);

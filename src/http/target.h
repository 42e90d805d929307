/* The parts of a request's target: percent-decoded, one at a time. */
#pragma once

#include "lib/err.h"

/*
 * Decode the segment of a raw path at *at (which is behind a '/') and move *at
 * behind the next '/', or to the end. A decoded segment may hold a '/' (sent
 * as %2F), but never NUL, and never is "." or "..".
 */
must_check int http_segment(const char **at, char *to, size_t size, struct err *e);

/* The first parameter of that name in a raw query; *found false and "" if none. */
must_check int http_query(const char *query, const char *name, char *to, size_t size,
			  bool *found, struct err *e);

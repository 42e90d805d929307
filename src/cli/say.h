/* What berth says to people, on standard error; the results go to standard output. */
#pragma once

#include "lib/err.h"

/*
 * "berth: what was wrong" and, on a line of its own, what to do about it; or as JSON, on one
 * line, with the members of the server's errors.
 */
void say_error(const struct err *e, bool json);

/* Of several that are tried, the first failure is returned in `first`, and each later one said. */
int say_failure(int so_far, const struct err *why, bool json, struct err *first); /* -1 */

void say(const char *fmt, ...) printf_like(1, 2); /* one line, "berth: " before it */

/*
 * All of it to standard output; -1 if that is closed or full. What would drive a terminal is
 * written as JSON writes it, see plain.h. A NUL stands behind the last byte.
 */
must_check int say_out(const char *data, size_t len, struct err *e);

/* The same to standard error, beside what a command wrote: there is no other way to tell it. */
void say_beside(const char *data, size_t len);

must_check int say_bytes(const char *data, size_t len, struct err *e); /* as they are */

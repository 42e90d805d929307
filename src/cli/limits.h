/* Limits as the command line takes them, NAME=NUMBER, and shows them. */
#pragma once

#include "lib/err.h"
#include "lib/json.h"
#include "lib/strv.h"

extern const char *const limit_names[]; /* ended by NULL */

/* Members of a request, from args[from] on. Whether there is such a limit, the server says. */
must_check int limits_body(struct buf *out, const struct strv *args, size_t from, struct err *e);

/* "256", or "none". */
#define LIMIT_TEXT_SIZE 24
const char *limit_text(const struct json *of, const char *name, char out[LIMIT_TEXT_SIZE]);

/* The user ids that settings files name. */
#pragma once

#include <sys/types.h>

#include "lib/err.h"

/* A user by name or by number; `program` is what runs as it, for the error's text. */
must_check int user_find(const char *name, const char *program, uid_t *ret, struct err *e);

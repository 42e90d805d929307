/* Rows of a list that are damaged in the database: the answer counts them, the log names one. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

/* The member `unreadable`; `first` is read only if there are any. */
void unreadable_json(struct buf *out, const char *list, int count, const struct err *first);

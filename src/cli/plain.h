/*
 * Text of others (users, guests, servers) for a terminal. What would drive it is written as JSON
 * writes it, \u001b: nothing is lost, and JSON stays what it was.
 */
#pragma once

#include "lib/buf.h"

void plain_add(struct buf *out, const char *s); /* one line: also line breaks and tabs */

/* The same, of lines: breaks and tabs stay. A NUL stands behind the last byte. */
void plain_add_lines(struct buf *out, const char *data, size_t len);

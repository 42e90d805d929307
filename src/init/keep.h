/*
 * What a command has said and berthd has not acknowledged yet, from its first such
 * byte on. The older part is in memory. The newer part may be in a pipe, where
 * it got without passing through us: see outlet.h.
 */
#pragma once

#include "lib/err.h"

#define KEEP_MAX ((size_t)1 << 20)

struct keep {
	uint8_t *data; /* the older part: data[at .. at + len) */
	size_t at, len, size;
	int pipe[2]; /* the newer part; -1: there is none */
	size_t piped;
	int null; /* where it goes from there once it is acknowledged */
};

void keep_init(struct keep *k);
void keep_done(struct keep *k);

size_t keep_len(const struct keep *k);
size_t keep_room(const struct keep *k); /* for this many more */

/* Room for `want` bytes at the end, in memory; then say how many came. Nothing may be piped. */
uint8_t *keep_space(struct keep *k, size_t want);
void keep_grew(struct keep *k, size_t n);

/* The bytes in memory from the n-th on. */
const uint8_t *keep_at(const struct keep *k, size_t n);

void keep_drop(struct keep *k, size_t n); /* the first n */
void keep_pull(struct keep *k);           /* what is in the pipe, to memory */
/* A pipe for the newer part; false if there is none to be had that is worth it. */
must_check bool keep_widen(struct keep *k);
void keep_unpipe(struct keep *k); /* all of it to memory, and do without from now on */

/*
 * What a command has said and berthd has not acknowledged yet, from its first such
 * byte on. The older part is in memory. The newer part may be in a pipe, where
 * it got without passing through us: see output-stream.h.
 */
#pragma once

#include "lib/err.h"

#define REPLAY_MAX ((size_t)1 << 20)

struct replay_buffer {
	uint8_t *data; /* the older part: data[at .. at + len) */
	size_t at, len, size;
	int pipe[2]; /* the newer part; -1: there is none */
	size_t piped;
	int null; /* where it goes from there once it is acknowledged */
};

void replay_buffer_init(struct replay_buffer *k);
void replay_buffer_done(struct replay_buffer *k);

size_t replay_buffer_len(const struct replay_buffer *k);
size_t replay_buffer_room(const struct replay_buffer *k); /* for this many more */

/* Room for `want` bytes at the end, in memory; then say how many came. Nothing may be piped. */
uint8_t *replay_buffer_space(struct replay_buffer *k, size_t want);
void replay_buffer_grew(struct replay_buffer *k, size_t n);

/* The bytes in memory from the n-th on. */
const uint8_t *replay_buffer_at(const struct replay_buffer *k, size_t n);

void replay_buffer_drop(struct replay_buffer *k, size_t n); /* the first n */
void replay_buffer_pull(struct replay_buffer *k);           /* what is in the pipe, to memory */
/* A pipe for the newer part; false if there is none to be had that is worth it. */
must_check bool replay_buffer_widen(struct replay_buffer *k);
/* all of it to memory, and do without from now on */
void replay_buffer_unpipe(struct replay_buffer *k);

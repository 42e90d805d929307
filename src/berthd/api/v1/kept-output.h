/*
 * Output that is kept for an answer in one piece: the beginning of each stream, up to a limit of
 * its own, one of its owner's and one of all. What is beyond is counted by the record, not kept,
 * and the answer says so (`stdout_truncated`).
 */
#pragma once

#include "lib/buf.h"

#define KEPT_STREAM_MAX ((size_t)4 * 1024 * 1024)   /* of each stream of one answer */
#define KEPT_ALL_MAX    ((size_t)256 * 1024 * 1024) /* of all answers under way */
#define KEPT_OWNER_MAX  (KEPT_ALL_MAX / 4)

struct berthd;

struct kept_output {
	struct berthd *berthd;
	size_t share; /* the owner's */
	struct buf out[2];
};

void kept_output_init(struct kept_output *k, struct berthd *b, const char *owner);
void kept_output_done(struct kept_output *k);

/* Bytes of a stream, which stand at `offset` in it. */
void kept_output_add(struct kept_output *k, int stream, uint64_t offset, const void *data,
		     size_t len);

/* "stdout" and "stderr", which had so many bytes in all. */
void kept_output_json(struct buf *json, const struct kept_output *k, const uint64_t bytes[2]);

/* One stream as text, or as `NAME_base64`; `cut`: by a limit of ours. */
void stream_json(struct buf *json, const char *name, const struct buf *out, bool cut);

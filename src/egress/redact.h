/*
 * Takes secrets out of a stream: every byte of one becomes '*', so lengths stay.
 * Only what could be the beginning of one is held back, at most the longest of them.
 */
#pragma once

#include "lib/buf.h"

#define REDACT_MAX      64 /* secrets of one stream */
#define REDACT_LEN_MIN  4  /* shorter ones are no secret, and everywhere */
#define REDACT_HELD_MAX 8192

struct redact {
	struct {
		const char *text; /* the caller's */
		size_t len;
	} secrets[REDACT_MAX];
	size_t count;
	struct buf held;
};

void redact_init(struct redact *r);
void redact_done(struct redact *r);
void redact_add(struct redact *r, const char *text);

/* Append to `out` what can be told by now; with `last` all of it. */
void redact_feed(struct redact *r, const char *data, size_t len, bool last, struct buf *out);

/*
 * Takes secrets out of a stream: every byte of one becomes '*', so lengths stay.
 *
 * A secret is found as it is, and as JSON, HTML, URLs and forms write it (a backslash, \u002f,
 * \x2f, %2F, &#47; &amp;), each character in a form of its own and escaped up to three times.
 * So is a beginning of it that is half of it, or at which the answer ends. Not found is what
 * a server makes of it otherwise: base64, a hash, backwards, its end alone.
 *
 * Only what could be the beginning of one is held back, at most the longest of them.
 */
#pragma once

#include "lib/buf.h"

#define REDACT_MAX      64 /* secrets of one stream */
#define REDACT_LEN_MIN  4  /* shorter ones are no secret, and everywhere */
#define REDACT_LEN_MAX  8192
#define REDACT_PART_MIN 8 /* characters of a beginning */

struct redact_secret {
	const char *text; /* the caller's */
	size_t len;
	size_t count; /* of its characters that are no backslash: those are looked for */
};

struct redact {
	struct redact_secret secrets[REDACT_MAX];
	size_t count;
	bool begins[256]; /* most bytes begin no secret in any form */
	struct buf held;
	size_t masked; /* so many bytes of it are found */
};

void redact_init(struct redact *r);
void redact_done(struct redact *r);
void redact_add(struct redact *r, const char *text);

/* Append to `out` what can be told by now; with `last` all of it. */
void redact_feed(struct redact *r, const char *data, size_t len, bool last, struct buf *out);

/* A text of its own, beside the stream. */
void redact_all(const struct redact *r, const char *data, size_t len, struct buf *out);

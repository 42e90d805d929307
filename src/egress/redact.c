#include "egress/redact.h"

#include <string.h>

void redact_init(struct redact *r)
{
	*r = (struct redact){ .held = buf_make(REDACT_HELD_MAX + 256UL * 1024) };
}

void redact_done(struct redact *r)
{
	buf_done(&r->held);
}

void redact_add(struct redact *r, const char *text)
{
	size_t len = strlen(text);

	if (len < REDACT_LEN_MIN || len > REDACT_HELD_MAX || r->count == REDACT_MAX)
		return;
	r->secrets[r->count].text = text;
	r->secrets[r->count++].len = len;
}

static void blot(char *data, size_t len, const char *secret, size_t secret_len)
{
	char *at = data;

	while ((at = memmem(at, len - (size_t)(at - data), secret, secret_len))) {
		memset(at, '*', secret_len);
		at += secret_len;
	}
}

/* How many bytes at the end could be the beginning of a secret. */
static size_t undecided(const struct redact *r, const char *data, size_t len)
{
	size_t most = 0;

	for (size_t i = 0; i < r->count; i++) {
		const char *secret = r->secrets[i].text;
		size_t k = r->secrets[i].len - 1;

		for (k = k < len ? k : len; k > most; k--)
			if (data[len - k] == secret[0] && memcmp(data + len - k, secret, k) == 0)
				break;
		most = k > most ? k : most;
	}
	return most;
}

void redact_feed(struct redact *r, const char *data, size_t len, bool last, struct buf *out)
{
	size_t keep;

	if (r->count == 0) {
		buf_add(out, data, len);
		return;
	}
	buf_add(&r->held, data, len);
	if (r->held.len == 0)
		return;
	for (size_t i = 0; i < r->count; i++)
		blot(r->held.data, r->held.len, r->secrets[i].text, r->secrets[i].len);
	keep = last ? 0 : undecided(r, r->held.data, r->held.len);
	buf_add(out, r->held.data, r->held.len - keep);
	buf_drop(&r->held, r->held.len - keep);
}

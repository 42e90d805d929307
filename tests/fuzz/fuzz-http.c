/*
 * Whatever bytes come, cut wherever: what the parser lets through is made of
 * plain strings within the head, the cut makes no difference to the verdict, and
 * no message without exactly one Host passes.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct verdict {
	unsigned requests;
	unsigned body; /* a sum over its bytes */
	uint16_t status;
};

struct run {
	struct http_parser parser;
	struct verdict v;
};

static void on_body(struct http_parser *p, const char *data, size_t len)
{
	struct run *r = (struct run *)(void *)p;

	for (size_t i = 0; i < len; i++)
		r->v.body = r->v.body * 31 + (unsigned char)data[i];
}

static void check_string(const struct http_parser *p, const char *s)
{
	const char *end = p->head.data + p->head.len;

	if (s < p->head.data || s >= end || !memchr(s, '\0', (size_t)(end - s)) ||
	    strpbrk(s, "\r\n"))
		abort();
}

static void check_head(const struct http_parser *p)
{
	const char *name, *value;
	unsigned hosts = 0;

	check_string(p, http_parser_target(p));
	for (size_t i = 0; http_parser_field(p, i, &name, &value); i++) {
		check_string(p, name);
		check_string(p, value);
		if (!name[0] || name[0] == ' ')
			abort();
		hosts += strcasecmp(name, "host") == 0;
	}
	if (hosts > 1 || (hosts == 0 && !http_parser_is_1_0(p)))
		abort();
}

/* As a connection does it: heads and bodies in turn, until something is bad. */
static bool feed(struct run *r, const char *data, size_t len)
{
	struct http_parser *p = &r->parser;

	while (len) {
		bool in_head = !p->head_done;
		size_t used = 0;
		enum parse_result result = in_head ? http_parser_head(p, data, len, &used)
						   : http_parser_body(p, data, len, &used);

		if (used > len)
			abort();
		if (result == PARSE_BAD) {
			r->v.status = p->status;
			return false;
		}
		if (in_head && result == PARSE_DONE) {
			check_head(p);
			r->v.requests++;
		}
		if (p->whole)
			http_parser_next(p);
		data += used;
		len -= used;
	}
	return true;
}

static struct verdict judge(const uint8_t *data, size_t size, size_t piece)
{
	struct run r = { 0 };

	http_parser_init(&r.parser, 512);
	r.parser.on_body = on_body;
	for (size_t at = 0; at < size; at += piece) {
		size_t len = size - at < piece ? size - at : piece;
		char *copy = malloc(len); /* so that reading past it is seen */

		memcpy(copy, data + at, len);
		bool go_on = feed(&r, copy, len);

		free(copy);
		if (!go_on)
			break;
	}
	http_parser_done(&r.parser);
	return r.v;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct verdict whole = judge(data, size, size + 1);

	for (size_t piece = 1; piece <= 7; piece += 3) {
		struct verdict cut = judge(data, size, piece);

		if (cut.requests != whole.requests || cut.body != whole.body ||
		    (cut.status != 0) != (whole.status != 0))
			abort();
	}
	return 0;
}

/*
 * Whatever a server answers, cut wherever: what the parser lets through is made
 * of plain strings within the head, the cut makes no difference, and no reply is
 * complete that did not say how long it is.
 */
#include <stdlib.h>
#include <string.h>

#include "http/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct http_parser parser;
	unsigned body; /* a sum over its bytes */
	unsigned heads;
	bool bad, whole;
};

static void on_body(struct http_parser *p, const char *data, size_t len)
{
	struct run *r = container_of(p, struct run, parser);

	for (size_t i = 0; i < len; i++)
		r->body = r->body * 31 + (unsigned char)data[i];
}

static void check_head(const struct http_parser *p)
{
	const char *name, *value, *end = p->head.data + p->head.len;

	if (http_parser_status(p) < 100 || http_parser_status(p) > 599)
		abort();
	for (size_t i = 0; http_parser_field(p, i, &name, &value); i++)
		if (!name[0] || strpbrk(name, "\r\n") || strpbrk(value, "\r\n") || name >= end ||
		    value >= end)
			abort();
	if (!p->whole && http_parser_content_length(p) < 0 && !(p->llhttp.flags & F_CHUNKED))
		abort();
}

/* As a call does it: heads until one is final, then its body. */
static void feed(struct run *r, const char *data, size_t len)
{
	struct http_parser *p = &r->parser;

	while (len && !r->bad && !r->whole) {
		bool in_head = !p->head_done;
		size_t used = 0;
		enum parse_result result = in_head ? http_parser_head(p, data, len, &used)
						   : http_parser_body(p, data, len, &used);

		if (used > len)
			abort();
		r->bad = result == PARSE_BAD;
		if (in_head && result == PARSE_DONE) {
			check_head(p);
			r->heads++;
			if (http_parser_status(p) < 200 && http_parser_status(p) != 101)
				http_parser_next(p);
			else
				r->whole = p->whole;
		} else {
			r->whole = result == PARSE_DONE;
		}
		data += used;
		len -= used;
	}
}

static struct run judge(const uint8_t *data, size_t size, size_t piece)
{
	struct run r = { 0 };

	http_parser_init_reply(&r.parser, size && data[0] == '#');
	r.parser.on_body = on_body;
	for (size_t at = size && data[0] == '#'; at < size && !r.bad && !r.whole; at += piece) {
		size_t len = size - at < piece ? size - at : piece;
		char *copy = malloc(len); /* so that reading past it is seen */

		memcpy(copy, data + at, len);
		feed(&r, copy, len);
		free(copy);
	}
	http_parser_done(&r.parser);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole = judge(data, size, size + 1);

	for (size_t piece = 1; piece <= 7; piece += 3) {
		struct run cut = judge(data, size, piece);

		if (cut.heads != whole.heads || cut.body != whole.body || cut.bad != whole.bad ||
		    cut.whole != whole.whole)
			abort();
	}
	return 0;
}

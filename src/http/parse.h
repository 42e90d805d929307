/*
 * The parser of one connection's requests, or of the reply to ours. It knows
 * bytes, not sockets.
 *
 * A head is gathered whole before anything is parsed, and scanned for what no
 * honest client sends (NUL, bare CR or LF, folded lines, an empty name). Only
 * then llhttp, in its strict mode, sees it, and after it four checks of ours.
 * What passes is a complete, unambiguous request: every string in it is
 * NUL-terminated and lies in `head`.
 *
 *	http_parser_head() until PARSE_DONE, then, unless `whole`,
 *	http_parser_body() until PARSE_DONE, then http_parser_next(), again.
 *
 * The lines between the chunks of a body end in CR LF, too; trailers are refused.
 *
 * Bytes past the end of a message are never looked at: `used` says how far it
 * came. After PARSE_BAD the connection is to be closed.
 *
 * A reply goes the same way. One whose end only the end of the connection would
 * tell is refused, unless `any_end`: cut off it would look complete.
 */
#pragma once

#include <llhttp.h>

#include "lib/buf.h"

_Static_assert(LLHTTP_STRICT_MODE == 1, "llhttp's other mode lets requests be smuggled");

#define HTTP_HEAD_MAX   16384 /* bytes, with the empty line */
#define HTTP_FIELDS_MAX 100

enum parse_result {
	PARSE_BAD,  /* `status` and `reason` say what to answer */
	PARSE_MORE, /* all was taken, more is needed */
	PARSE_DONE,
};

struct http_field { /* offsets in the head */
	uint16_t name;
	uint16_t name_len;
	uint16_t value;
	uint16_t value_len;
};

struct http_parser {
	llhttp_t llhttp;
	struct buf head;
	struct http_field *fields;
	uint16_t field_count;
	uint16_t field_size;
	uint16_t head_max;

	/* the scan */
	uint16_t line_len;
	char before;
	const char *lines; /* of a chunked body: not scanned from here on */

	/* the message, from PARSE_DONE of its head on */
	uint16_t target;
	uint16_t target_len;
	bool field_open;
	bool head_done;
	bool reply;     /* not a request */
	bool head_only; /* to a HEAD: it has no body, whatever it says */
	bool any_end;   /* a reply may be of HTTP/1.0, and end with the connection */
	bool whole;
	bool keep_alive;
	bool upgrade;

	/* PARSE_BAD */
	uint16_t status;
	const char *reason;

	/* Set by the owner: body bytes, as they come, from http_parser_body(). */
	void (*on_body)(struct http_parser *p, const char *data, size_t len);
};

void http_parser_init(struct http_parser *p, size_t head_max);
void http_parser_init_reply(struct http_parser *p, bool head_only);
void http_parser_done(struct http_parser *p);
void http_parser_next(struct http_parser *p);   /* ready for the next message */
void http_parser_forget(struct http_parser *p); /* give the head's memory back */

enum parse_result http_parser_head(struct http_parser *p, const char *data, size_t len,
				   size_t *used);
enum parse_result http_parser_body(struct http_parser *p, const char *data, size_t len,
				   size_t *used);

const char *http_parser_method(const struct http_parser *p);
const char *http_parser_target(const struct http_parser *p);
int http_parser_status(const struct http_parser *p); /* of a reply */
bool http_parser_is_1_0(const struct http_parser *p);

/* -1 if the request does not say (chunked, or no body at all). */
int64_t http_parser_content_length(const struct http_parser *p);

/* The i-th header; false past the last. */
bool http_parser_field(const struct http_parser *p, size_t i, const char **name,
		       const char **value);
/* The first of that name, in any case; NULL if there is none. */
const char *http_parser_find(const struct http_parser *p, const char *name);

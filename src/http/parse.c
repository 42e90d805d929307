#include "http/parse.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char line_end[] = "the lines of a chunked body end in CR LF";

static enum parse_result refuse(struct http_parser *p, uint16_t status, const char *reason)
{
	p->status = status;
	p->reason = reason;
	return PARSE_BAD;
}

/* The head's text is in one piece while llhttp runs over it, so a span is too. */
static uint16_t offset_of(const struct http_parser *p, const char *at)
{
	return (uint16_t)(at - p->head.data);
}

static int fail(llhttp_t *l, const char *reason)
{
	llhttp_set_error_reason(l, reason);
	return HPE_USER;
}

static int on_url(llhttp_t *l, const char *at, size_t len)
{
	struct http_parser *p = l->data;

	if (p->target_len)
		return fail(l, "the target is in pieces");
	p->target = offset_of(p, at);
	p->target_len = (uint16_t)len;
	return 0;
}

static int on_header_field(llhttp_t *l, const char *at, size_t len)
{
	struct http_parser *p = l->data;

	if (p->head_done)
		return fail(l, "trailer fields are not taken");
	if (len == 0 || p->field_open)
		return fail(l, "a header without a name");
	if (p->field_count == HTTP_FIELDS_MAX)
		return fail(l, "too many headers");
	if (p->field_count == p->field_size) {
		p->field_size = p->field_size ? (uint16_t)(2 * p->field_size) : 8;
		p->fields = xrealloc(p->fields, p->field_size * sizeof(*p->fields));
	}
	p->fields[p->field_count++] = (struct http_field){
		.name = offset_of(p, at),
		.name_len = (uint16_t)len,
	};
	p->field_open = true;
	return 0;
}

static int on_header_field_complete(llhttp_t *l)
{
	struct http_parser *p = l->data;

	p->field_open = false;
	return 0;
}

static int on_header_value(llhttp_t *l, const char *at, size_t len)
{
	struct http_parser *p = l->data;
	struct http_field *f;

	if (p->head_done)
		return fail(l, "trailer fields are not taken");
	if (p->field_count == 0)
		return fail(l, "a value without a name");
	f = &p->fields[p->field_count - 1];
	if (f->value_len)
		return fail(l, "a value in pieces");
	f->value = offset_of(p, at);
	f->value_len = (uint16_t)len;
	return 0;
}

static int on_headers_complete(llhttp_t *l)
{
	struct http_parser *p = l->data;

	p->head_done = true;
	p->keep_alive = llhttp_should_keep_alive(l);
	if (p->head_only)
		return 1; /* llhttp's word for: no body follows */
	if (p->reply && !p->any_end && !l->upgrade && llhttp_message_needs_eof(l))
		return fail(l, "a reply that does not tell its length");
	return 0;
}

/*
 * Between the data of a chunked body there are lines, and each ends in CR LF: where llhttp takes
 * LF alone, a server may read on.
 */
static bool lines_end_well(struct http_parser *p, const char *end)
{
	for (; p->lines < end; p->lines++) {
		if ((*p->lines == '\n') != (p->before == '\r'))
			return false;
		p->before = *p->lines;
	}
	return true;
}

static int on_body(llhttp_t *l, const char *at, size_t len)
{
	struct http_parser *p = l->data;

	if (!lines_end_well(p, at))
		return fail(l, line_end);
	p->lines = at + len;
	p->before = '\0';
	if (p->on_body)
		p->on_body(p, at, len);
	return 0;
}

static int on_message_complete(llhttp_t *l)
{
	struct http_parser *p = l->data;

	p->whole = true;
	return HPE_PAUSED; /* what follows has not been scanned */
}

static const llhttp_settings_t settings = {
	.on_url = on_url,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_headers_complete = on_headers_complete,
	.on_body = on_body,
	.on_message_complete = on_message_complete,
};

void http_parser_init(struct http_parser *p, size_t head_max)
{
	if (head_max == 0 || head_max > HTTP_HEAD_MAX)
		head_max = HTTP_HEAD_MAX;
	*p = (struct http_parser){ .head_max = (uint16_t)head_max };
	p->head = buf_make(head_max + 1);
	http_parser_next(p);
}

void http_parser_init_reply(struct http_parser *p, bool head_only)
{
	http_parser_init(p, HTTP_HEAD_MAX);
	p->reply = true;
	p->head_only = head_only;
	http_parser_next(p);
}

void http_parser_done(struct http_parser *p)
{
	http_parser_forget(p);
}

void http_parser_forget(struct http_parser *p)
{
	buf_done(&p->head);
	free(p->fields);
	p->fields = NULL;
	p->field_count = p->field_size = 0;
}

void http_parser_next(struct http_parser *p)
{
	llhttp_init(&p->llhttp, p->reply ? HTTP_RESPONSE : HTTP_REQUEST, &settings);
	p->llhttp.data = p;
	buf_clear(&p->head);
	p->field_count = 0;
	p->line_len = p->target_len = 0;
	p->before = '\0';
	p->field_open = p->head_done = p->whole = p->keep_alive = p->upgrade = false;
}

/*
 * Look for the end of the head in the bytes that came, refusing what is not
 * made of plain lines. Returns how many bytes belong to the head; *ends says
 * whether the last of them closes it. 0: refused.
 */
static size_t scan_lines(struct http_parser *p, const char *data, size_t len, bool *ends)
{
	uint16_t line_len = p->line_len;
	char before = p->before;
	size_t i;

	*ends = false;
	for (i = 0; i < len && !*ends; i++) {
		char c = data[i];

		if (c > ':' && before != '\r') { /* most bytes of most heads */
			line_len++;
			before = c;
			continue;
		}
		if (c == '\0' || (c == '\n') != (before == '\r'))
			return 0;
		if (line_len == 0 && (c == ' ' || c == '\t' || c == ':'))
			return 0;
		if (c == '\n') {
			*ends = line_len == 0;
			line_len = 0;
		} else if (c != '\r') {
			line_len++;
		}
		before = c;
	}
	p->line_len = line_len;
	p->before = before;
	return i;
}

/* llhttp has seen the delimiters: they become the ends of strings. */
static void end_strings(struct http_parser *p)
{
	char *head = p->head.data;

	if (!p->reply)
		head[p->target + p->target_len] = '\0';
	for (size_t i = 0; i < p->field_count; i++) {
		struct http_field *f = &p->fields[i];
		size_t len = f->value_len;

		head[f->name + f->name_len] = '\0';
		if (len == 0)
			f->value = (uint16_t)(f->name + f->name_len);
		while (len && strchr(" \t", head[f->value + len - 1]))
			len--;
		head[f->value + len] = '\0';
	}
}

static size_t count_fields(const struct http_parser *p, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < p->field_count; i++)
		count += strcasecmp(p->head.data + p->fields[i].name, name) == 0;
	return count;
}

/* Other codings are for proxies to misunderstand. */
static bool is_coded_plainly(const struct http_parser *p)
{
	const char *coding = http_parser_find(p, "Transfer-Encoding");

	return !coding ||
	       (count_fields(p, "Transfer-Encoding") == 1 && strcasecmp(coding, "chunked") == 0);
}

/* What llhttp lets through and we do not. */
static enum parse_result check_head(struct http_parser *p)
{
	const char *target = p->head.data + p->target;
	bool is_1_0 = http_parser_is_1_0(p);

	if (p->llhttp.http_major != 1 || p->llhttp.http_minor > 1 ||
	    memcmp(target + p->target_len, "\0HTTP/1.", 8) != 0)
		return refuse(p, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
	if (count_fields(p, "Host") != 1 && !(is_1_0 && count_fields(p, "Host") == 0))
		return refuse(p, 400, "there must be exactly one Host header");
	if (is_1_0 && count_fields(p, "Transfer-Encoding") > 0)
		return refuse(p, 400, "HTTP/1.0 has no Transfer-Encoding");
	if (!is_coded_plainly(p))
		return refuse(p, 400, "Transfer-Encoding can only be chunked");
	if (p->llhttp.method == HTTP_CONNECT)
		return refuse(p, 400, "this is no proxy");
	/* An absolute target could name another host than the Host header. */
	if (target[0] != '/' && strcmp(target, "*") != 0)
		return refuse(p, 400, "the target must begin with /");
	return PARSE_DONE;
}

static enum parse_result check_reply(struct http_parser *p)
{
	if (p->llhttp.http_major != 1 || p->llhttp.http_minor > 1 ||
	    (http_parser_is_1_0(p) && !p->any_end))
		return refuse(p, 502, "only HTTP/1.1 is spoken here");
	if (p->llhttp.status_code < 100 || p->llhttp.status_code > 599)
		return refuse(p, 502, "a status that means nothing");
	return PARSE_DONE;
}

static enum parse_result parse_head(struct http_parser *p)
{
	enum llhttp_errno error = llhttp_execute(&p->llhttp, p->head.data, p->head.len);

	if (p->field_count == HTTP_FIELDS_MAX && error == HPE_USER)
		return refuse(p, 431, "too many headers");
	if (error != HPE_OK && error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE)
		return refuse(p, 400, llhttp_get_error_reason(&p->llhttp));
	if (!p->head_done || (!p->reply && p->target_len == 0))
		return refuse(p, 400, "not a request");
	p->upgrade = p->llhttp.upgrade && p->whole;
	end_strings(p);
	return p->reply ? check_reply(p) : check_head(p);
}

enum parse_result http_parser_head(struct http_parser *p, const char *data, size_t len,
				   size_t *used)
{
	size_t room = p->head_max - p->head.len;
	bool cut = len > room, ends;

	*used = scan_lines(p, data, cut ? room : len, &ends);
	if (*used == 0 && len && room)
		return refuse(p, 400, "a head is lines of text that end in CR LF");
	buf_add(&p->head, data, *used);
	if (ends)
		return parse_head(p);
	if (cut || p->head.len == p->head_max)
		return refuse(p, 431, "the head is too long");
	return PARSE_MORE;
}

enum parse_result http_parser_body(struct http_parser *p, const char *data, size_t len,
				   size_t *used)
{
	enum llhttp_errno error;

	p->lines = data;
	*used = len;
	error = llhttp_execute(&p->llhttp, data, len);
	if (error != HPE_OK) {
		if (!p->whole || (error != HPE_PAUSED && error != HPE_PAUSED_UPGRADE))
			return refuse(p, 400, llhttp_get_error_reason(&p->llhttp));
		*used = (size_t)(llhttp_get_error_pos(&p->llhttp) - data);
	}
	if (!lines_end_well(p, data + *used))
		return refuse(p, 400, line_end);
	return error == HPE_OK ? PARSE_MORE : PARSE_DONE;
}

const char *http_parser_method(const struct http_parser *p)
{
	return llhttp_method_name((llhttp_method_t)p->llhttp.method);
}

const char *http_parser_target(const struct http_parser *p)
{
	return p->head.data + p->target;
}

int http_parser_status(const struct http_parser *p)
{
	return p->llhttp.status_code;
}

bool http_parser_is_1_0(const struct http_parser *p)
{
	return p->llhttp.http_minor == 0;
}

int64_t http_parser_content_length(const struct http_parser *p)
{
	const uint64_t length = p->llhttp.content_length;

	if (p->whole)
		return 0;
	if (p->llhttp.flags & F_CHUNKED)
		return -1;
	return length > INT64_MAX ? INT64_MAX : (int64_t)length;
}

bool http_parser_field(const struct http_parser *p, size_t i, const char **name,
		       const char **value)
{
	if (i >= p->field_count)
		return false;
	*name = p->head.data + p->fields[i].name;
	*value = p->head.data + p->fields[i].value;
	return true;
}

const char *http_parser_find(const struct http_parser *p, const char *name)
{
	const char *have, *value;

	for (size_t i = 0; http_parser_field(p, i, &have, &value); i++)
		if (strcasecmp(have, name) == 0)
			return value;
	return NULL;
}

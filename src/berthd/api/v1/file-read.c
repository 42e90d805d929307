/* GET files: the bytes of a file, or a range of them, as fast as the client takes them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "berthd/api/v1/file-call.h"
#include "berthd/api/v1/files.h"

#define ETAG_SIZE 80

static const char *digits(const char *at, uint64_t *ret)
{
	uint64_t n = 0;

	for (; *at >= '0' && *at <= '9'; at++) {
		if (n > (UINT64_MAX - 9) / 10)
			return "x"; /* no number: the range is not one */
		n = n * 10 + (uint64_t)(*at - '0');
	}
	*ret = n;
	return at;
}

/* One range. Anything else in the header is as if it were not there, as RFC 9110 has it. */
static enum file_range_type parse_range(const char *text, uint64_t *from, uint64_t *length)
{
	uint64_t first = 0, last = 0;
	const char *at, *end;

	if (!text || strncmp(text, "bytes=", 6) != 0)
		return FILE_RANGE_NONE;
	at = digits(text + 6, &first);
	if (*at != '-')
		return FILE_RANGE_NONE;
	end = digits(at + 1, &last);
	if (*end || (at == text + 6 && end == at + 1))
		return FILE_RANGE_NONE;
	if (at == text + 6) {
		*length = last;
		return FILE_RANGE_LAST;
	}
	if (end > at + 1 && last < first)
		return FILE_RANGE_NONE;
	*from = first;
	if (end == at + 1)
		return FILE_RANGE_FROM;
	*length = last - first + 1;
	return FILE_RANGE_BETWEEN;
}

/* What the answer has of a file of that size. False: none of it. */
static bool fit_range(struct file_call *c, uint64_t size)
{
	if (c->range.type == FILE_RANGE_NONE) {
		c->range.from = 0;
		c->range.length = size;
		return true;
	}
	if (c->range.type == FILE_RANGE_LAST) {
		c->range.length = c->range.length < size ? c->range.length : size;
		c->range.from = size - c->range.length;
		return c->range.length > 0;
	}
	if (c->range.from >= size)
		return false;
	if (c->range.type == FILE_RANGE_FROM || c->range.length > size - c->range.from)
		c->range.length = size - c->range.from;
	return true;
}

static void add_headers(struct file_call *c, const struct file_entry *x, const char *etag)
{
	struct http_exchange *h = c->rq->x;
	time_t seconds = (time_t)(x->mtime_ns / 1000000000U);
	char text[96];
	struct tm tm;

	snprintf(text, sizeof(text), "%04o", x->mode);
	(void)!http_reply_header(h, "Berth-Mode", text);
	(void)!http_reply_header(h, "ETag", etag);
	(void)!http_reply_header(h, "Accept-Ranges", "bytes");
	if (gmtime_r(&seconds, &tm) &&
	    strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &tm) > 0)
		(void)!http_reply_header(h, "Last-Modified", text);
	if (c->range.type == FILE_RANGE_NONE)
		return;
	snprintf(text, sizeof(text), "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, c->range.from,
		 c->range.from + c->range.length - 1, x->size);
	(void)!http_reply_header(h, "Content-Range", text);
}

static void not_satisfiable(struct file_call *c, uint64_t size)
{
	char text[64];
	struct err e;

	snprintf(text, sizeof(text), "bytes */%" PRIu64, size);
	(void)!http_reply_header(c->rq->x, "Content-Range", text);
	err_set(&e, ERR_INVALID, "the file has only %" PRIu64 " bytes", size);
	err_reason(&e, NULL, 416);
	file_call_fail(c, &e);
}

static void not_modified(struct file_call *c, const char *etag)
{
	(void)!http_reply_header(c->rq->x, "ETag", etag);
	file_call_end(c, 304);
}

static void on_entry(void *data, const struct file_entry *x)
{
	struct file_call *c = data;
	const char *none_match = http_header(c->rq->x, "If-None-Match");
	const char *if_range = http_header(c->rq->x, "If-Range");
	char etag[ETAG_SIZE];
	struct err e;

	snprintf(etag, sizeof(etag), "\"%" PRIx64 "-%" PRIx64 "-%" PRIx64 "\"", x->inode, x->size,
		 x->mtime_ns);
	if (none_match && (strcmp(none_match, "*") == 0 || strstr(none_match, etag)))
		return not_modified(c, etag);
	if (if_range && strcmp(if_range, etag) != 0) {
		err_set(&e, ERR_CONFLICT, "the file is not the one the range was asked of");
		err_reason(&e, NULL, 412);
		return file_call_fail(c, &e);
	}
	if (!fit_range(c, x->size))
		return not_satisfiable(c, x->size);
	add_headers(c, x, etag);
	c->streaming = true;
	if (x->size == 0) /* /proc's files say so, too */
		http_stream_begin(c->rq->x, 200, "application/octet-stream");
	else
		http_stream_begin_sized(c->rq->x, c->range.type == FILE_RANGE_NONE ? 200 : 206,
					"application/octet-stream", c->range.length);
}

static bool on_bytes(void *data, const uint8_t *b, size_t len)
{
	struct file_call *c = data;

	return http_stream_data(c->rq->x, b, len);
}

static void on_done(void *data, const struct file_result *result)
{
	struct file_call *c = data;

	(void)result;
	file_call_end(c, c->range.type == FILE_RANGE_NONE ? 200 : 206);
}

static const struct file_op_sink sink = {
	.entry = on_entry,
	.bytes = on_bytes,
	.done = on_done,
	.failed = file_call_failed,
};

void files_read(struct request *rq)
{
	struct file_request ask = { .verb = FILE_READ };
	struct file_range range = { 0 };
	struct err e;

	range.type = parse_range(http_header(rq->x, "Range"), &range.from, &range.length);
	if (file_query(rq, &ask, &e) < 0)
		return request_fail(rq, &e);
	ask.offset = range.type == FILE_RANGE_LAST ? range.length : range.from;
	ask.length = range.type == FILE_RANGE_BETWEEN ? range.length : 0;
	ask.flags = range.type == FILE_RANGE_LAST ? FILE_FROM_END : 0;
	file_call_begin(rq, &ask, &range, &sink);
}

/* ---- a whole tree ---- */

/* The reply begins with the first bytes: what fails before has an answer of its own. */
static bool pack_bytes(void *data, const uint8_t *b, size_t len)
{
	struct file_call *c = data;

	if (!c->streaming)
		http_stream_begin(c->rq->x, 200, "application/x-tar");
	c->streaming = true;
	return http_stream_data(c->rq->x, b, len);
}

static const struct file_op_sink pack_sink = {
	.bytes = pack_bytes,
	.done = on_done,
	.failed = file_call_failed,
};

void files_pack(struct request *rq)
{
	struct file_request ask = { .verb = FILE_PACK };
	struct err e;

	if (file_query(rq, &ask, &e) < 0)
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &pack_sink);
}

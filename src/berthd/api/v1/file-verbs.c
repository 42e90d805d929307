/* The operations whose answer is one JSON text. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/file-call.h"
#include "berthd/api/v1/files.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"

#define LIST_LIMIT     1000
#define LIST_LIMIT_MAX 10000

/* ---- one entry ---- */

static void entry_done(void *data, const struct file_result *result)
{
	struct file_call *c = data;
	bool created = result->count == 1 && c->ask.verb == FILE_MKDIR;

	file_entry_json(&c->json, result->entry);
	file_call_reply(c, created ? 201 : 200);
}

static const struct file_op_sink entry_sink = { .done = entry_done, .failed = file_call_failed };

void files_stat(struct request *rq)
{
	struct file_request ask = { .verb = FILE_STAT };
	struct err e;

	if (file_query(rq, &ask, &e) < 0)
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &entry_sink);
}

struct path_body {
	char path[FILE_PATH_SIZE], from[FILE_PATH_SIZE], to[FILE_PATH_SIZE];
	char mode[16];
	bool parents, overwrite;
};

static const struct json_field mkdir_fields[] = {
	JSON_FIELD_STR(path_body, path, .required = true),
	JSON_FIELD_STR(path_body, mode),
	JSON_FIELD_BOOL(path_body, parents),
	JSON_FIELD_END
};

static const struct json_field move_fields[] = {
	JSON_FIELD_STR(path_body, from, .required = true),
	JSON_FIELD_STR(path_body, to, .required = true),
	JSON_FIELD_BOOL(path_body, overwrite),
	JSON_FIELD_END
};

void files_mkdir(struct request *rq)
{
	struct file_request ask = { .verb = FILE_MKDIR };
	struct path_body body = { .mode = "" };
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, mkdir_fields, &body, &e) < 0 ||
	    (body.mode[0] && file_mode(body.mode, &ask, &e) < 0))
		return request_fail(rq, &e);
	memcpy(ask.path, body.path, sizeof(ask.path));
	ask.flags |= body.parents ? FILE_PARENTS : 0;
	file_call_begin(rq, &ask, NULL, &entry_sink);
}

void files_move(struct request *rq)
{
	struct file_request ask = { .verb = FILE_MOVE };
	struct path_body body = { .mode = "" };
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, move_fields, &body, &e) < 0)
		return request_fail(rq, &e);
	memcpy(ask.path, body.from, sizeof(ask.path));
	memcpy(ask.to, body.to, sizeof(ask.to));
	ask.flags |= body.overwrite ? FILE_OVERWRITE : 0;
	file_call_begin(rq, &ask, NULL, &entry_sink);
}

/* ---- a count ---- */

static void remove_done(void *data, const struct file_result *result)
{
	struct file_call *c = data;

	json_open(&c->json, '{');
	json_int(&c->json, "removed", (int64_t)result->count);
	buf_adds(&c->json, "}");
	file_call_reply(c, 200);
}

static const struct file_op_sink remove_sink = { .done = remove_done, .failed = file_call_failed };

void files_remove(struct request *rq)
{
	struct file_request ask = { .verb = FILE_REMOVE };
	struct err e;

	if (file_query(rq, &ask, &e) < 0 ||
	    file_query_flag(rq, "recursive", FILE_RECURSIVE, &ask, &e) < 0)
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &remove_sink);
}

/* ---- a list ---- */

static void list_opened(void *data)
{
	struct file_call *c = data;

	json_open(&c->json, '{');
	json_key(&c->json, "entries");
	json_open(&c->json, '[');
}

static void list_entry(void *data, const struct file_entry *x)
{
	struct file_call *c = data;

	file_entry_json(&c->json, x);
}

/* Where the next page begins: a path may be no text, so it goes as hex. */
static void list_done(void *data, const struct file_result *result)
{
	struct file_call *c = data;
	char next[2 * FILE_PATH_SIZE + 1] = "";

	if (result->count > 0 && result->entry)
		str_hex(next, result->entry->path, strlen(result->entry->path));
	buf_adds(&c->json, "]");
	json_str(&c->json, "next", next);
	buf_adds(&c->json, "}");
	file_call_reply(c, 200);
}

static const struct file_op_sink list_sink = {
	.opened = list_opened,
	.entry = list_entry,
	.done = list_done,
	.failed = file_call_failed,
};

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_after(const struct request *rq, char to[FILE_PATH_SIZE], struct err *e)
{
	char hex[2 * FILE_PATH_SIZE] = "";
	bool found;
	size_t len;

	if (http_query(rq->x->query, "after", hex, sizeof(hex), &found, e) < 0)
		return -1;
	len = strlen(hex);
	for (size_t i = 0; i < len; i += 2) {
		int high = hex_value(hex[i]), low = hex_value(hex[i + 1]);

		if (high < 0 || low < 0 || high + low == 0)
			return err_set(e, ERR_INVALID, "after is not the \"next\" of a page");
		to[i / 2] = (char)(high * 16 + low);
	}
	to[len / 2] = '\0';
	return 0;
}

void files_list(struct request *rq)
{
	struct file_request ask = { .verb = FILE_LIST, .limit = LIST_LIMIT };
	char text[32] = "";
	uint64_t limit;
	bool found;
	struct err e;

	if (file_query(rq, &ask, &e) < 0 ||
	    file_query_flag(rq, "recursive", FILE_RECURSIVE, &ask, &e) < 0 ||
	    read_after(rq, ask.to, &e) < 0 ||
	    http_query(rq->x->query, "limit", text, sizeof(text), &found, &e) < 0 ||
	    (found && str_u64(text, &limit, &e) < 0))
		return request_fail(rq, &e);
	if (found && (limit == 0 || limit > LIST_LIMIT_MAX)) {
		err_set(&e, ERR_INVALID, "limit is 1 to %d", LIST_LIMIT_MAX);
		return request_fail(rq, &e);
	}
	if (found)
		ask.limit = (uint32_t)limit;
	file_call_begin(rq, &ask, NULL, &list_sink);
}

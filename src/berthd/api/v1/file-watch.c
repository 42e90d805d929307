/* GET files/watch: changes as events, until the client has seen enough. */
#include <string.h>

#include "berthd/api/v1/file-call.h"
#include "berthd/api/v1/files.h"
#include "lib/json.h"

/* A client that does not read is not waited for: the engine ends its stream when it is full. */
static void on_change(void *data, const struct file_change *x)
{
	struct file_call *c = data;
	cleanup(buf_done) struct buf json = buf_make(64 * 1024);
	const char *name = "change";

	if (!c->streaming) {
		c->streaming = c->events_sent = true;
		request_stream(c->rq);
	}
	if (x->type == FILE_CHANGE_WATCHING || x->type == FILE_CHANGE_OVERFLOW)
		name = file_change_name(x->type);
	json_open(&json, '{');
	if (strcmp(name, "change") == 0)
		json_str(&json, "type", file_change_name(x->type));
	file_json_name(&json, "path", x->path);
	if (x->type == FILE_CHANGE_MOVED)
		file_json_name(&json, "to", x->to);
	buf_adds(&json, "}");
	(void)request_event(c->rq, name, &json);
}

static void on_done(void *data, const struct file_result *result)
{
	(void)result;
	file_call_end(data, 200);
}

static const struct file_op_sink sink = {
	.change = on_change,
	.done = on_done,
	.failed = file_call_failed,
};

void files_watch(struct request *rq)
{
	struct file_request ask = { .verb = FILE_WATCH };
	struct err e;

	if (file_query(rq, &ask, &e) < 0 ||
	    file_query_flag(rq, "recursive", FILE_RECURSIVE, &ask, &e) < 0)
		return request_fail(rq, &e);
	file_call_begin(rq, &ask, NULL, &sink);
}

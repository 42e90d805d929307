/* POST .../execs/{}/stdin: bytes for a command that was begun with stdin_open. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/mailbox.h"
#include "http/target.h"
#include "lib/json.h"

struct giving {
	struct request *rq;
	size_t bytes;
};

static void on_given(void *data, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(256);
	cleanup(free_ptr) struct giving *g = data;

	if (why)
		return request_fail(g->rq, why);
	json_open(&body, '{');
	json_int(&body, "bytes", (int64_t)g->bytes);
	buf_adds(&body, "}");
	request_reply(g->rq, 200, &body);
}

void execs_stdin(struct request *rq)
{
	struct giving *g;
	struct journal *j;
	char end[8];
	bool found;
	struct err e;

	if (http_query(rq->query, "end", end, sizeof(end), &found, &e) < 0 ||
	    execs_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	g = xcalloc(1, sizeof(*g));
	*g = (struct giving){ rq, rq->body.len };
	mail_input(rq->reactor, j, &rq->body, found && strcmp(end, "1") == 0, on_given, g);
	journal_unref(j);
}

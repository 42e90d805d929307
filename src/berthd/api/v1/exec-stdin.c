/* POST .../execs/{}/stdin: bytes for a command that was begun with stdin_open. */
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/execs.h"
#include "berthd/exec/errand.h"
#include "http/target.h"
#include "lib/json.h"

static void on_given(struct errand *e, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(256);
	struct request *rq = e->data;
	struct err failed = why ? *why : (struct err){ 0 };

	json_open(&body, '{');
	json_int(&body, "bytes", (int64_t)e->input.len);
	buf_adds(&body, "}");
	buf_done(&e->input);
	journal_unref(e->journal);
	free(e);
	if (failed.code != ERR_NONE)
		return request_fail(rq, &failed);
	request_reply(rq, 200, &body);
}

void execs_stdin(struct request *rq)
{
	struct errand *errand;
	struct journal *j;
	char end[8];
	bool found;
	struct err e;

	if (http_query(rq->query, "end", end, sizeof(end), &found, &e) < 0 ||
	    execs_find(rq, &j, &e) < 0)
		return request_fail(rq, &e);
	errand = xcalloc(1, sizeof(*errand));
	*errand = (struct errand){ .from = rq->reactor,
				   .journal = j,
				   .input = rq->body,
				   .input_end = found && strcmp(end, "1") == 0,
				   .done = on_given,
				   .data = rq };
	rq->body = (struct buf){ 0 };
	errand_send(errand);
}

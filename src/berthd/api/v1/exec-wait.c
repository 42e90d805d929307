/* GET .../execs/{}/wait: until it ends, says something, or listens on a port. */
#include "berthd/exec/wait.h"

#include <string.h>

#include "berthd/api/v1/execs.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"

static const char *const words[WAIT_FOR_COUNT] = {
	[WAIT_FOR_EXIT] = "exit",
	[WAIT_FOR_LOG] = "log",
	[WAIT_FOR_PORT] = "port",
};

static const char *const ends[] = {
	[WAIT_ENDED] = "ended",
	[WAIT_SAID] = "log",
	[WAIT_LISTENS] = "port",
	[WAIT_TIMED_OUT] = "timeout",
};

static void on_done(void *data, const struct wait_result *result, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = data;

	if (why)
		return request_fail(rq, why);
	json_open(&body, '{');
	json_bool(&body, "ready", result->ready);
	json_str(&body, "why", ends[result->end]);
	json_key(&body, "exec");
	exec_record_json(&body, result->journal);
	buf_adds(&body, "}");
	request_reply(rq, 200, &body);
}

static void on_gone(struct request *rq)
{
	wait_cancel(rq->data);
	request_end(rq, 499);
}

struct query {
	char what[16], text[WAIT_TEXT_MAX], port[16], timeout[24];
};

static int read_what(const char *word, enum wait_for *ret, struct err *e)
{
	for (int i = 0; i < WAIT_FOR_COUNT; i++) {
		if (strcmp(word[0] ? word : "exit", words[i]) == 0) {
			*ret = (enum wait_for)i;
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "for must be exit, log or port");
}

static int read_query(const char *query, struct query *q, struct wait_ask *ask, struct err *e)
{
	bool port, timeout, found;

	if (http_query(query, "for", q->what, sizeof(q->what), &found, e) < 0 ||
	    http_query(query, "pattern", q->text, sizeof(q->text), &found, e) < 0 ||
	    http_query(query, "port", q->port, sizeof(q->port), &port, e) < 0 ||
	    (port && str_u64(q->port, &ask->port, e) < 0) ||
	    http_query(query, "timeout_ms", q->timeout, sizeof(q->timeout), &timeout, e) < 0 ||
	    (timeout && str_u64(q->timeout, &ask->timeout_ms, e) < 0))
		return -1;
	return read_what(q->what, &ask->what, e);
}

void execs_wait(struct request *rq)
{
	struct query q = { 0 };
	struct wait_ask ask = {
		.by = request_caller(rq),
		.text = q.text,
		.timeout_ms = WAIT_DEFAULT_MS,
	};
	struct err e;
	int n;

	if (read_query(rq->x ? rq->x->query : "", &q, &ask, &e) < 0 ||
	    execs_find(rq, &ask.journal, &e) < 0)
		return request_fail(rq, &e);
	rq->on_gone = on_gone;
	n = wait_begin(&ask, on_done, rq, &rq->data, &e);
	journal_unref(ask.journal);
	if (n < 0)
		request_fail(rq, &e);
}

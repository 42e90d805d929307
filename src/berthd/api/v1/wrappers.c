#include "berthd/api/v1/wrappers.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/agent/processes.h"
#include "berthd/agent/wrapper.h"
#include "berthd/api/v1/execs.h"
#include "http/target.h"
#include "lib/hash.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

/* ---- as JSON ---- */

/* 0, NEVER: null */
static void add_time(struct buf *out, const char *name, uint64_t ms)
{
	char text[TIME_TEXT_SIZE];

	json_key(out, name);
	if (ms == 0 || ms == NEVER) {
		buf_adds(out, "null");
		return;
	}
	time_text(ms, text);
	json_add_string(out, text);
}

/* `look` NULL: the wrapper was not looked at. */
static void add_wrapper(struct buf *out, const struct wrapper *w, const struct look *look)
{
	const struct lease *l = &w->lease;
	char exec[WRAPPER_EXEC_SIZE] = "";

	if (l->instance.generation)
		wrapper_exec_id(exec, w->name, &l->instance);
	json_open(out, '{');
	json_str(out, "sandbox", w->sandbox);
	json_str(out, "name", w->name);
	json_str(out, "state", lease_state_name(l->state));
	if (look)
		json_str(out, "alive", wrapper_seen_name(look->seen.seen));
	if (look)
		json_str(out, "evidence", look_evidence_name(look->evidence));
	json_str(out, "instance", l->instance.id);
	json_int(out, "generation", (int64_t)l->instance.generation);
	json_str(out, "exec", exec);
	add_time(out, "deadline_at", lease_deadline_ms(l));
	json_str(out, "reason", l->reason == LEASE_REASON_NONE ? "" : lease_reason_name(l->reason));
	json_int(out, "attempts", l->stop.attempts);
	json_str(out, "last_error", l->stop.last_error);
	add_time(out, "created_at", w->created_ms);
	json_key(out, "receipt");
	buf_adds(out, w->receipt[0] ? w->receipt : "null");
	buf_adds(out, "}");
}

struct listing {
	struct buf *out;
};

static void add_one(const struct wrapper *w, void *arg)
{
	struct listing *l = arg;

	add_wrapper(l->out, w, NULL);
}

int wrappers_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = { reply };
	struct sandbox sb;

	if (store_sandbox_get(s, request_owner(rq), rq->param, &sb, e) < 0)
		return -1;
	json_open(reply, '{');
	json_key(reply, "wrappers");
	json_open(reply, '[');
	if (store_wrapper_list(s, sb.id, add_one, &l, e) < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", "");
	buf_adds(reply, "}");
	return 0;
}

/* ---- launch ---- */

struct launch_body {
	struct strv argv, env;
	char *command;
	char cwd[EXEC_CWD_SIZE];
};

static const struct json_field body_fields[] = {
	JSON_FIELD_STRV(launch_body, argv),
	JSON_FIELD_TEXT(launch_body, command),
	JSON_FIELD_STR(launch_body, cwd),
	JSON_FIELD_MAP(launch_body, env),
	JSON_FIELD_END
};

static void body_done(struct launch_body *b)
{
	strv_done(&b->argv);
	strv_done(&b->env);
	free(b->command);
}

static int read_launch(const struct request *rq, struct exec_request *ask, struct err *e)
{
	cleanup(body_done) struct launch_body b = { 0 };

	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, e) < 0)
		return -1;
	if (exec_words_check(b.argv.len > 0, b.command != NULL, e) < 0)
		return -1;
	if (b.command) {
		strv_add(&b.argv, "/bin/sh");
		strv_add(&b.argv, "-c");
		strv_add(&b.argv, b.command);
	}
	ask->argv = b.argv;
	ask->env = b.env;
	b.argv = b.env = (struct strv){ 0 };
	memcpy(ask->cwd, b.cwd, sizeof(ask->cwd));
	return 0;
}

static void fail_until(struct request *rq, uint64_t retry_ms, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);

	request_error_json(rq, why, &body);
	body.len--; /* the brace */
	add_time(&body, "retry_at", retry_ms);
	buf_adds(&body, "}");
	request_reply(rq, err_status(why), &body);
}

static void on_launched(void *data, const struct wrapper_answer *a, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = data;

	if (why && a->retry_ms)
		return fail_until(rq, a->retry_ms, why);
	if (why)
		return request_fail(rq, why);
	add_wrapper(&body, a->w, a->look);
	request_reply(rq, a->fresh ? 201 : 200, &body);
}

static struct wrapper_ask ask_of(const struct request *rq)
{
	return (struct wrapper_ask){ request_caller(rq), rq->param, rq->sub, "" };
}

void wrappers_launch(struct request *rq)
{
	struct wrapper_ask a = ask_of(rq);
	struct wrapper_launch l = { 0 };
	struct err e;

	hash_hex(buf_str(&rq->body), rq->body.len, l.what);
	if (read_launch(rq, &l.ask, &e) < 0 || wrapper_launch(&a, &l, on_launched, rq, &e) < 0)
		request_fail(rq, &e);
}

/* ---- one of them, and what is said of it ---- */

static void on_answer(void *data, const struct wrapper_answer *a, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = data;
	bool reads = strcmp(rq->method, "GET") == 0;

	if (why)
		return request_fail(rq, why);
	add_wrapper(&body, a->w, a->look);
	request_reply(rq, a->stopping && !reads ? 202 : 200, &body);
}

void wrappers_get(struct request *rq)
{
	struct wrapper_ask a = ask_of(rq);

	wrapper_get(&a, on_answer, rq);
}

struct statement_body {
	char instance[LEASE_INSTANCE_SIZE];
	bool ok;
	char reason[STOP_REASON_SIZE];
};

static const struct json_field fact_fields[] = {
	JSON_FIELD_STR(statement_body, instance, .required = true),
	JSON_FIELD_END
};
static const struct json_field settled_fields[] = {
	JSON_FIELD_STR(statement_body, instance, .required = true),
	JSON_FIELD_BOOL(statement_body, ok, .required = true),
	JSON_FIELD_END
};
static const struct json_field stop_fields[] = {
	JSON_FIELD_STR(statement_body, instance),
	JSON_FIELD_STR(statement_body, reason),
	JSON_FIELD_END
};

/* Of no instance nothing can be said. */
static int read_fact(const struct request *rq, const struct json_field *fields,
		     struct statement_body *b, struct err *e)
{
	if (json_read(buf_str(&rq->body), rq->body.len, fields, b, e) < 0)
		return -1;
	return b->instance[0] ? 0 : err_set(e, ERR_INVALID, "instance is missing");
}

static void take_fact(struct request *rq, void (*say)(const struct wrapper_ask *a,
						      wrapper_answer_fn *done, void *data))
{
	struct wrapper_ask a = ask_of(rq);
	struct statement_body b = { 0 };
	struct err e;

	if (read_fact(rq, fact_fields, &b, &e) < 0)
		return request_fail(rq, &e);
	memcpy(a.instance, b.instance, sizeof(a.instance));
	say(&a, on_answer, rq);
}

void wrappers_ready(struct request *rq)
{
	take_fact(rq, wrapper_ready);
}

void wrappers_accepted(struct request *rq)
{
	take_fact(rq, wrapper_accepted);
}

void wrappers_settled(struct request *rq)
{
	struct wrapper_ask a = ask_of(rq);
	struct statement_body b = { 0 };
	struct err e;

	if (read_fact(rq, settled_fields, &b, &e) < 0)
		return request_fail(rq, &e);
	memcpy(a.instance, b.instance, sizeof(a.instance));
	wrapper_settled(&a, b.ok, on_answer, rq);
}

void wrappers_stop(struct request *rq)
{
	struct wrapper_ask a = ask_of(rq);
	enum lease_reason reason = LEASE_USER_INTERRUPT;
	struct statement_body b = { 0 };
	struct err e;

	if (rq->body.len > 0 &&
	    json_read(buf_str(&rq->body), rq->body.len, stop_fields, &b, &e) < 0)
		return request_fail(rq, &e);
	memcpy(a.instance, b.instance, sizeof(a.instance));
	if (b.reason[0])
		reason = lease_reason_by_name(b.reason);
	if (reason == LEASE_REASON_NONE) {
		err_set(&e, ERR_INVALID, "there is no reason to stop that is called %.63s",
			b.reason);
		return request_fail(rq, &e);
	}
	wrapper_stop(&a, reason, on_answer, rq);
}

void wrappers_delete(struct request *rq)
{
	struct wrapper_ask a = ask_of(rq);
	struct err e;
	bool found;

	if (http_query(rq->query, "instance", a.instance, sizeof(a.instance), &found, &e) < 0)
		return request_fail(rq, &e);
	wrapper_stop(&a, LEASE_SESSION_DELETE, on_answer, rq);
}

/* ---- its processes ---- */

/* clang-format off */
static const struct {
	uint32_t letter; /* the kernel's */
	const char *name;
} process_states[] = {
	{ 'R',	"running" },
	{ 'S',	"sleeping" },
	{ 'D',	"waiting" },
	{ 'I',	"sleeping" },
	{ 'T',	"stopped" },
	{ 't',	"traced" },
	{ 'Z',	"ended" },
	{ 'X',	"ended" },
};
/* clang-format on */

static const char *process_state_name(uint32_t letter)
{
	for (size_t i = 0; i < array_len(process_states); i++)
		if (process_states[i].letter == letter)
			return process_states[i].name;
	return "unknown";
}

/* An engine tells no memory. */
static void add_process(struct buf *out, const struct node_process *p, bool by_engine)
{
	json_open(out, '{');
	json_int(out, "pid", p->pid);
	json_int(out, "parent", p->parent);
	json_str(out, "state", process_state_name(p->state));
	if (by_engine) {
		json_key(out, "memory_bytes");
		buf_adds(out, "null");
	} else {
		json_int(out, "memory_bytes", (int64_t)p->memory_bytes);
	}
	json_str(out, "command", p->command);
	buf_adds(out, "}");
}

static void on_processes(void *data, const struct wrapper_processes *list, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = data;

	if (why)
		return request_fail(rq, why);
	json_open(&body, '{');
	json_str(&body, "exec", list->exec);
	json_str(&body, "evidence", list->by_engine ? "engine" : "host");
	json_bool(&body, "truncated", list->truncated);
	json_key(&body, "processes");
	json_open(&body, '[');
	for (size_t i = 0; i < list->count; i++)
		add_process(&body, &list->items[i], list->by_engine);
	buf_adds(&body, "]}");
	request_reply(rq, 200, &body);
}

void wrappers_processes(struct request *rq)
{
	struct caller by = request_caller(rq);

	wrapper_processes_look(&by, rq->param, rq->sub, on_processes, rq);
}

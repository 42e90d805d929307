#include "berthd/api/v1/wrappers.h"

#include <stdlib.h>
#include <string.h>

#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

/* ---- as JSON ---- */

void wrapper_time_json(struct buf *out, const char *name, uint64_t ms)
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

void wrapper_json(struct buf *out, const struct wrapper *w, const struct look *look)
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
	wrapper_time_json(out, "deadline_at", lease_deadline_ms(l));
	json_str(out, "reason", l->reason == LEASE_REASON_NONE ? "" : lease_reason_name(l->reason));
	json_int(out, "attempts", l->stop.attempts);
	json_str(out, "last_error", l->stop.last_error);
	wrapper_time_json(out, "created_at", w->created_ms);
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

	wrapper_json(l->out, w, NULL);
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

/* ---- one of them, and what is said of it ---- */

struct saying {
	struct request *rq;
	enum lease_event fact; /* of an instance */
	char instance[LEASE_INSTANCE_SIZE];
	enum lease_reason reason; /* of a stop */
};

static void on_done(struct lease_operation *t, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	cleanup(free_ptr) struct saying *s = t->data;
	bool owes = lease_deadline_ms(&t->w.lease) != NEVER && t->w.lease.stop.state != STOP_NONE;
	struct err e = why ? *why : (struct err){ 0 };

	wrapper_json(&body, &t->w, &t->look);
	lease_op_free(t);
	if (why)
		return request_fail(s->rq, &e);
	request_reply(s->rq, owes && strcmp(s->rq->method, "GET") != 0 ? 202 : 200, &body);
}

static void begin(struct request *rq, const struct saying *what, lease_op_decide_fn *decide)
{
	struct saying *s = xcalloc(1, sizeof(*s));
	struct lease_operation *t = lease_op_new(rq->reactor, rq->id, request_owner(rq));

	*s = *what;
	s->rq = rq;
	t->data = s;
	lease_op_name(t, rq->param, rq->sub);
	lease_op_begin(t, decide, on_done);
}

void wrappers_get(struct request *rq)
{
	struct saying *s = xcalloc(1, sizeof(*s));
	struct lease_operation *t = lease_op_new(rq->reactor, rq->id, request_owner(rq));

	s->rq = rq;
	t->data = s;
	lease_op_name(t, rq->param, rq->sub);
	lease_op_beside(t, lease_op_only_look, on_done);
}

static int check_instance(const struct lease_operation *t, const char *instance, struct err *e)
{
	if (!instance[0] || strcmp(instance, t->w.lease.instance.id) == 0)
		return 0;
	err_set(e, ERR_CONFLICT, "the lease of wrapper %s is not of the instance %.39s", t->w.name,
		instance);
	err_fix(e, "What is said of an instance that was replaced changes nothing.");
	return err_reason(e, "another_instance", 0);
}

static int decide_fact(struct lease_operation *t, const struct moment *now, struct err *e)
{
	const struct saying *s = t->data;
	struct lease_input in = { .event = s->fact, .instance = t->w.lease.instance };

	if (check_instance(t, s->instance, e) < 0)
		return -1;
	return lease_op_apply(t, &in, now, e);
}

static int decide_stop(struct lease_operation *t, const struct moment *now, struct err *e)
{
	const struct saying *s = t->data;

	if (check_instance(t, s->instance, e) < 0)
		return -1;
	return lease_op_stop(t, s->reason, now, e);
}

struct say_body {
	char instance[LEASE_INSTANCE_SIZE];
	bool ok;
	char reason[STOP_REASON_SIZE];
};

static const struct json_field fact_fields[] = {
	JSON_FIELD_STR(say_body, instance, .required = true),
	JSON_FIELD_END
};
static const struct json_field settled_fields[] = {
	JSON_FIELD_STR(say_body, instance, .required = true),
	JSON_FIELD_BOOL(say_body, ok, .required = true),
	JSON_FIELD_END
};
static const struct json_field stop_fields[] = {
	JSON_FIELD_STR(say_body, instance),
	JSON_FIELD_STR(say_body, reason),
	JSON_FIELD_END
};

/* Of no instance nothing can be said. */
static int read_saying(const struct request *rq, const struct json_field *fields,
		       struct say_body *b, struct err *e)
{
	if (json_read(buf_str(&rq->body), rq->body.len, fields, b, e) < 0)
		return -1;
	return b->instance[0] ? 0 : err_set(e, ERR_INVALID, "instance is missing");
}

static void say_fact(struct request *rq, enum lease_event fact)
{
	struct saying s = { .fact = fact };
	struct say_body b = { 0 };
	struct err e;

	if (read_saying(rq, fact_fields, &b, &e) < 0)
		return request_fail(rq, &e);
	memcpy(s.instance, b.instance, sizeof(s.instance));
	begin(rq, &s, decide_fact);
}

void wrappers_ready(struct request *rq)
{
	say_fact(rq, LEASE_VERIFIED);
}

void wrappers_accepted(struct request *rq)
{
	say_fact(rq, LEASE_ACCEPTED);
}

void wrappers_settled(struct request *rq)
{
	struct saying s = { .fact = LEASE_SETTLED, .reason = LEASE_TERMINAL_FAILED };
	struct say_body b = { 0 };
	struct err e;

	if (read_saying(rq, settled_fields, &b, &e) < 0)
		return request_fail(rq, &e);
	memcpy(s.instance, b.instance, sizeof(s.instance));
	begin(rq, &s, b.ok ? decide_fact : decide_stop);
}

void wrappers_stop(struct request *rq)
{
	struct saying s = { .reason = LEASE_USER_INTERRUPT };
	struct say_body b = { 0 };
	struct err e;

	if (rq->body.len > 0 &&
	    json_read(buf_str(&rq->body), rq->body.len, stop_fields, &b, &e) < 0)
		return request_fail(rq, &e);
	memcpy(s.instance, b.instance, sizeof(s.instance));
	if (b.reason[0])
		s.reason = lease_reason_by_name(b.reason);
	if (s.reason == LEASE_REASON_NONE) {
		err_set(&e, ERR_INVALID, "there is no reason to stop that is called %.63s",
			b.reason);
		return request_fail(rq, &e);
	}
	begin(rq, &s, decide_stop);
}

void wrappers_delete(struct request *rq)
{
	struct saying s = { .reason = LEASE_SESSION_DELETE };
	struct err e;
	bool found;

	if (http_query(rq->query, "instance", s.instance, sizeof(s.instance), &found, &e) < 0)
		return request_fail(rq, &e);
	begin(rq, &s, decide_stop);
}

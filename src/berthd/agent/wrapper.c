#include "berthd/agent/wrapper.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/agent/lease-op.h"

/* One thing that is said of a wrapper, from here to its answer. */
struct statement {
	enum lease_event fact; /* of an instance */
	char instance[LEASE_INSTANCE_SIZE];
	enum lease_reason reason; /* of a stop */
	wrapper_answer_fn *done;
	void *data;
};

static bool is_stopping(const struct lease *l)
{
	return lease_deadline_ms(l) != NEVER && l->stop.state != STOP_NONE;
}

static void on_done(struct lease_operation *t, const struct err *why)
{
	cleanup(free_ptr) struct statement *s = t->data;
	struct wrapper_answer a = {
		.w = &t->w,
		.look = &t->look,
		.stopping = is_stopping(&t->w.lease),
	};

	s->done(s->data, &a, why);
	lease_op_free(t);
}

static struct lease_operation *operation_new(const struct wrapper_ask *a,
					     const struct statement *what)
{
	struct lease_operation *t = lease_op_new(a->by.reactor, a->by.request, a->by.owner);
	struct statement *s = xcalloc(1, sizeof(*s));

	*s = *what;
	memcpy(s->instance, a->instance, sizeof(s->instance));
	t->data = s;
	lease_op_name(t, a->sandbox, a->name);
	return t;
}

static int check_instance(const struct lease_operation *t, struct err *e)
{
	const struct statement *s = t->data;

	if (!s->instance[0] || strcmp(s->instance, t->w.lease.instance.id) == 0)
		return 0;
	err_set(e, ERR_CONFLICT, "the lease of wrapper %s is not of the instance %.39s", t->w.name,
		s->instance);
	err_fix(e, "What is said of an instance that was replaced changes nothing.");
	return err_reason(e, "another_instance", 0);
}

static int decide_fact(struct lease_operation *t, const struct moment *now, struct err *e)
{
	const struct statement *s = t->data;
	struct lease_input in = { .event = s->fact, .instance = t->w.lease.instance };

	if (check_instance(t, e) < 0)
		return -1;
	return lease_op_apply(t, &in, now, e);
}

static int decide_stop(struct lease_operation *t, const struct moment *now, struct err *e)
{
	const struct statement *s = t->data;

	if (check_instance(t, e) < 0)
		return -1;
	return lease_op_stop(t, s->reason, now, e);
}

void wrapper_get(const struct wrapper_ask *a, wrapper_answer_fn *done, void *data)
{
	struct statement s = { .done = done, .data = data };

	lease_op_beside(operation_new(a, &s), lease_op_only_look, on_done);
}

void wrapper_ready(const struct wrapper_ask *a, wrapper_answer_fn *done, void *data)
{
	struct statement s = { .fact = LEASE_VERIFIED, .done = done, .data = data };

	lease_op_begin(operation_new(a, &s), decide_fact, on_done);
}

void wrapper_accepted(const struct wrapper_ask *a, wrapper_answer_fn *done, void *data)
{
	struct statement s = { .fact = LEASE_ACCEPTED, .done = done, .data = data };

	lease_op_begin(operation_new(a, &s), decide_fact, on_done);
}

void wrapper_settled(const struct wrapper_ask *a, bool ok, wrapper_answer_fn *done, void *data)
{
	struct statement s = { .fact = LEASE_SETTLED, .done = done, .data = data };

	if (!ok)
		return wrapper_stop(a, LEASE_TERMINAL_FAILED, done, data);
	lease_op_begin(operation_new(a, &s), decide_fact, on_done);
}

void wrapper_stop(const struct wrapper_ask *a, enum lease_reason reason, wrapper_answer_fn *done,
		  void *data)
{
	struct statement s = { .reason = reason, .done = done, .data = data };

	lease_op_begin(operation_new(a, &s), decide_stop, on_done);
}

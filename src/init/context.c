#include "init/context.h"

#include <poll.h>
#include <string.h>

#include "init/context-server.h"
#include "init/handover.h"

#define TRIES_MAX   3000 /* for a holder that comes or goes just now */
#define TRY_WAIT_MS 10

/* The context is not there, so there is nothing to end. */
static void say_ended(struct frame_conn *p)
{
	cleanup(buf_done) struct buf frames = buf_make(1024), record = buf_make(256);

	exec_exit_encode(&record, &(struct exec_exit){ .kind = EXEC_KILLED });
	frame_add(&frames, FRAME_EXITED, record.data, record.len);
	frame_conn_put_frame(p, &frames);
	if (frame_conn_flush(p) < 0)
		return; /* it left first */
}

static int serve_context(struct frame_conn *p, const struct context_request *q,
			 struct broker *broker, struct err *e)
{
	struct context_server h;

	if (context_server_open(&h, q, broker, e) < 0)
		return -1;
	context_server_run(&h, take_fd(p->fd), q->timeout_ms);
	context_server_close(&h);
	return 0;
}

static int take_name(const char *name, struct broker *broker, bool *taken, struct err *e)
{
	struct broker_packet p = { .word = BROKER_TAKE };
	enum broker_word answer;

	memcpy(p.attach.id, name, strlen(name) + 1);
	answer = broker_ask(broker, &p, -1);
	if (answer != BROKER_YES && answer != BROKER_NO && answer != BROKER_BUSY)
		return err_set(e, ERR_BUSY, "the sandbox's init does not answer");
	*taken = answer == BROKER_YES;
	return 0;
}

/* 1: a server answers for it now; 0: try again; -1: it is refused. */
static int try_once(struct frame_conn *p, const struct context_request *q, struct broker *broker,
		    struct err *e)
{
	cleanup(close_fd) int to = -1;
	struct handover h = { q->verb, q->timeout_ms };
	char name[EXEC_ID_SIZE];
	enum broker_word answer;
	bool taken = false;

	if (handover_name(q->id, name, e) < 0 ||
	    (q->verb == CONTEXT_RUN && take_name(name, broker, &taken, e) < 0))
		return -1;
	if (taken)
		return serve_context(p, q, broker, e) < 0 ? -1 : 1;
	answer = handover_reach(broker, name, q->verb, &to);
	if (answer == BROKER_NO && q->verb == CONTEXT_END) {
		say_ended(p);
		return 1;
	}
	if (answer == BROKER_UNSEEN && q->verb == CONTEXT_END)
		return broker_unseen(e);
	if (answer != BROKER_YES)
		return 0;
	switch (handover_give(to, &h, p->fd)) {
	case HANDOVER_DELETED:
		err_set(e, ERR_NOT_FOUND, "the context was deleted");
		return -1;
	case HANDOVER_BUSY:
		return err_set(e, ERR_BUSY, "too many runs wait for this context");
	case HANDOVER_TAKEN:
	case HANDOVER_LEFT:
		return 1;
	default:
		return 0;
	}
}

bool context_is_end(const struct frame *request)
{
	cleanup(context_request_done) struct context_request q = { 0 };
	struct err e;

	return context_request_decode(request->payload, &q, &e) == 0 && q.verb == CONTEXT_END;
}

void context_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	cleanup(context_request_done) struct context_request q = { 0 };
	struct err e;
	int n;

	if (context_request_decode(request->payload, &q, &e) < 0) {
		frame_conn_refuse(p, &e);
		return;
	}
	frame_conn_took(p, request);
	n = p->in.len > 0 ? err_set(&e, ERR_INVALID, "a run before the context has started") : 0;
	for (int i = 0; n == 0 && i < TRIES_MAX; i++) {
		n = try_once(p, &q, broker, &e);
		if (n == 0)
			(void)poll(NULL, 0, TRY_WAIT_MS);
	}
	if (n == 0)
		n = err_set(&e, ERR_BUSY, "the context neither runs nor ends");
	if (n < 0)
		frame_conn_refuse(p, &e);
}

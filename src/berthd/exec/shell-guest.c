#include "berthd/exec/shell-guest.h"

#include <stdlib.h>

#include "proto/writer.h"

struct asking {
	struct init_link *link;
	enum frame_type what;
	struct buf payload;
	shell_guest_fn done;
	void *data;
};

static void asking_free(struct asking *a)
{
	buf_done(&a->payload);
	free(a);
}

static void answer(struct asking *a, const struct shell_state *state, const struct err *why)
{
	shell_guest_fn done = a->done;
	void *data = a->data;

	init_link_close(a->link);
	asking_free(a);
	done(data, state, why);
}

static void on_opened(void *data)
{
	struct asking *a = data;

	(void)init_link_send(a->link, a->what, a->payload.data, a->payload.len);
	init_link_expect(a->link);
}

static void on_frame(void *data, const struct frame *f)
{
	struct asking *a = data;
	struct shell_state state;
	struct err e = { 0 };

	if (f->type == FRAME_ERROR) {
		frame_guest_error(f, &e);
		return answer(a, NULL, &e);
	}
	if (f->type != FRAME_SHELL_STATE || shell_state_decode(f->payload, &state, &e) < 0) {
		err_set(&e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
		return answer(a, NULL, &e);
	}
	answer(a, &state, NULL);
}

static bool on_bytes(void *data, const uint8_t *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return false; /* this call asks for no bytes */
}

static void on_failed(void *data, const struct err *why)
{
	struct asking *a = data;
	shell_guest_fn done = a->done;
	void *to = a->data;
	struct err e = *why;

	asking_free(a);
	done(to, NULL, &e);
}

static const struct init_link_events events = { on_opened, on_frame, on_bytes, NULL, on_failed };

static struct asking *asking_new(enum frame_type what, shell_guest_fn done, void *data)
{
	struct asking *a = xcalloc(1, sizeof(*a));

	a->what = what;
	a->done = done;
	a->data = data;
	a->payload = buf_make(FRAME_PAYLOAD_MAX);
	return a;
}

static void ask(struct asking *a, const struct init_dial_ask *way)
{
	a->link = init_link_new(way->reactor, &events, a);
	init_link_open(a->link, way);
}

void shell_guest_begin(const struct init_dial_ask *way, const struct shell_request *q,
		       shell_guest_fn done, void *data)
{
	struct asking *a = asking_new(FRAME_SHELL, done, data);

	shell_request_encode(&a->payload, q);
	ask(a, way);
}

void shell_guest_ask(const struct init_dial_ask *way, enum frame_type what, const char *name,
		     shell_guest_fn done, void *data)
{
	struct asking *a = asking_new(what, done, data);

	writer_str(&a->payload, name);
	ask(a, way);
}

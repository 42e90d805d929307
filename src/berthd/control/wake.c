#include "berthd/control/wake.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/str.h"

#define WAKE_TRIES 4 /* while others put it to sleep again */

bool wake_leads_out_of(enum sandbox_state s)
{
	return s == SANDBOX_ASLEEP || s == SANDBOX_FALLING_ASLEEP || s == SANDBOX_WAKING;
}

struct wake {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	char id[SANDBOX_ID_SIZE];
	enum sandbox_event ev;
	int tries;
	wait_stable_fn *done;
	void *data;
};

static void on_settled(void *data, const struct sandbox *sb, const struct err *why);

static void settle(struct wake *w)
{
	struct wait_stable how = {
		.reactor = w->reactor,
		.request = w->request,
		.sandbox = w->id,
		.done = on_settled,
		.data = w,
	};

	wait_stable_begin(&how);
}

static void wake_end(struct wake *w, const struct sandbox *sb, const struct err *why)
{
	w->done(w->data, sb, why);
	free(w);
}

static void on_woken(struct transition *c, const struct err *why)
{
	struct wake *w = c->data;
	bool again = why && (why->code == ERR_CONFLICT || why->code == ERR_BUSY) &&
		     ++w->tries < WAKE_TRIES;

	if (again || (!why && c->sb.state != SANDBOX_READY))
		settle(w);
	else
		wake_end(w, &c->sb, why);
	transition_free(c);
}

static void on_settled(void *data, const struct sandbox *sb, const struct err *why)
{
	struct wake *w = data;
	struct transition *c;

	if (why || sb->state == SANDBOX_READY)
		return wake_end(w, sb, why);
	c = transition_new(w->reactor, w->request);
	c->sb = *sb;
	c->data = w;
	transition_event(c, w->ev, NULL, on_woken);
}

void control_wake(const struct wait_stable *how, enum sandbox_event ev)
{
	struct wake *w = xcalloc(1, sizeof(*w));

	w->reactor = how->reactor;
	(void)!str_copy(w->request, sizeof(w->request), how->request);
	(void)!str_copy(w->id, sizeof(w->id), how->sandbox);
	w->ev = ev;
	w->done = how->done;
	w->data = how->data;
	settle(w);
}

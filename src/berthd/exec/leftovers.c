#include "berthd/exec/leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "lib/errno-map.h"
#include "lib/str.h"
#include "proto/exec.h"
#include "proto/writer.h"

struct leftovers {
	struct init_link *link;
	char exec[EXEC_ID_SIZE];
	leftovers_fn done;
	void *data;
};

bool leftovers_unknown(struct err *why)
{
	if (!why->reason || strcmp(why->reason, REASON_LEFT_UNKNOWN) != 0)
		return false;
	err_fix(why, "This stays so. Putting the sandbox to sleep ends all in it.");
	return true;
}

/* The link closes itself after it has failed. */
static void finish(struct leftovers *l, uint64_t killed, const struct err *why)
{
	leftovers_fn done = l->done;
	void *data = l->data;

	free(l);
	done(data, killed, why);
}

static void on_opened(void *data)
{
	struct leftovers *l = data;
	cleanup(buf_done) struct buf out = buf_make(EXEC_ID_SIZE + 8);

	writer_str(&out, l->exec);
	(void)init_link_send(l->link, FRAME_KILL_LEFT, out.data, out.len);
	init_link_expect(l->link);
}

static void on_frame(void *data, const struct frame *f)
{
	struct leftovers *l = data;
	struct err e = { 0 };
	uint32_t killed;

	init_link_close(l->link);
	if (f->type == FRAME_KILL_LEFT && frame_u32(f, &killed, &e) == 0)
		return finish(l, killed, NULL);
	err_set(&e, ERR_INTERNAL, "the sandbox's init sent an unexpected frame");
	if (f->type == FRAME_ERROR)
		frame_guest_error(f, &e);
	if (e.code == ERR_INVALID) { /* an init of before there was this request */
		err_set(&e, ERR_CONFLICT, "the sandbox's init is too old to tell what was left");
		err_reason(&e, REASON_LEFT_UNKNOWN, 0);
	}
	/* What to do is not the guest's to say. */
	if (!leftovers_unknown(&e))
		err_fix(&e, "Try again. Putting the sandbox to sleep ends all in it.");
	finish(l, 0, &e);
}

static bool on_bytes(void *data, const uint8_t *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return false; /* none were asked for */
}

static void on_failed(void *data, const struct err *why)
{
	bool absent = why->code == ERR_NOT_FOUND || why->code == ERR_CONFLICT;
	struct err e = *why;

	finish(data, 0, absent ? NULL : &e);
}

static const struct init_link_events events = { on_opened, on_frame, on_bytes, NULL, on_failed };

void leftovers_kill(const struct init_dial_ask *way, const char *exec, leftovers_fn done,
		    void *data)
{
	struct leftovers *l = xcalloc(1, sizeof(*l));

	l->done = done;
	l->data = data;
	(void)!str_copy(l->exec, sizeof(l->exec), exec); /* it fits: an exec has it */
	l->link = init_link_new(way->reactor, &events, l);
	init_link_open(l->link, way);
}

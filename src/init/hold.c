#include "init/hold.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#define HOLD_MS 30000

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* What has come: 1 is GO, 0 nothing yet. */
static int hear(struct frame_conn *p, struct err *e)
{
	struct frame f;
	int n = frame_conn_next(p, &f, e);

	if (n <= 0)
		return n;
	if (f.type != FRAME_GO)
		return err_set(e, ERR_INVALID, "a frame of type %u instead of GO", f.type);
	frame_conn_took(p, &f);
	return 1;
}

int hold_until_go(struct frame_conn *p, pid_t pid, struct err *e)
{
	cleanup(buf_done) struct buf frame = buf_make(64);
	int64_t until = now_ms() + HOLD_MS, left;
	int n;

	frame_add_u32(&frame, FRAME_HELD, (uint32_t)pid);
	frame_conn_put_frame(p, &frame);
	while ((n = hear(p, e)) == 0 && (left = until - now_ms()) > 0) {
		struct pollfd fd = { p->fd, (short)(POLLIN | (frame_conn_busy(p) ? POLLOUT : 0)),
				     0 };

		if (poll(&fd, 1, (int)left) <= 0)
			continue;
		if ((frame_conn_busy(p) && frame_conn_flush(p) < 0) ||
		    (fd.revents & (POLLIN | POLLHUP | POLLERR) && frame_conn_read(p) < 0))
			return err_set(e, ERR_BUSY, "the host hung up before it said GO");
	}
	if (n == 0)
		return err_set(e, ERR_TIMEOUT, "the host did not say GO in time");
	return n < 0 ? -1 : 0;
}

#include "init/operation.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "init/context.h"
#include "init/exec.h"
#include "init/files.h"
#include "init/peer.h"
#include "init/port.h"
#include "init/shell.h"
#include "init/user.h"

#define FIRST_FRAME_MS 30000

static void hello_serve(struct peer *p, const struct frame *request, int hub)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	(void)request;
	(void)hub;
	frame_add_u32(&frame, FRAME_HELLO, FRAME_VERSION);
	peer_put_frame(p, &frame);
	if (peer_flush(p) < 0)
		return; /* it left first */
}

/* What a connection can begin with. */
static void (*const verbs[FRAME_TYPE_END])(struct peer *, const struct frame *, int hub) = {
	[FRAME_HELLO] = hello_serve,
	[FRAME_EXEC] = exec_serve,
	[FRAME_CONTEXT] = context_serve,
	[FRAME_ATTACH] = exec_attach_serve,
	[FRAME_PORT] = port_serve,
	[FRAME_SHELL] = shell_serve,
	[FRAME_SHELL_ASK] = shell_ask_serve,
	[FRAME_SHELL_END] = shell_end_serve,
	[FRAME_FILE] = files_serve,
};

/* 1: it is there; 0: the peer left or said nothing; -1: it is not one. */
static int first_frame(struct peer *p, struct frame *ret, struct err *e)
{
	int n;

	while ((n = peer_next(p, ret, e)) == 0) {
		struct pollfd fd = { p->fd, POLLIN, 0 };

		if (poll(&fd, 1, FIRST_FRAME_MS) <= 0 || peer_read(p) < 0)
			return 0;
	}
	if (n > 0 && !verbs[ret->type])
		return err_set(e, ERR_INVALID, "a frame of type %u begins nothing", ret->type);
	return n;
}

void operation_run(int conn, int hub)
{
	cleanup(peer_close) struct peer p = { .fd = -1 };
	struct frame f;
	struct err e;
	int n;

	peer_open(&p, conn);
	n = user_make_as() < 0 ? err_sys(&e, errno, "take the ids of the image's user")
			       : first_frame(&p, &f, &e);
	if (n > 0)
		verbs[f.type](&p, &f, hub);
	else if (n < 0)
		peer_refuse(&p, &e);
}

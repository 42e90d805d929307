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
#include "init/frame-conn.h"
#include "init/pid1-broker.h"
#include "init/shell.h"
#include "init/tree.h"
#include "init/user.h"
#include "init/wait-port.h"

#define FIRST_FRAME_MS 30000
#define SPARE_FRAME_MS 2000 /* others wait behind it */

static void hello_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	(void)request;
	(void)broker;
	frame_add_u32(&frame, FRAME_HELLO, FRAME_VERSION);
	frame_conn_put_frame(p, &frame);
	if (frame_conn_flush(p) < 0)
		return; /* it left first */
}

static bool always(const struct frame *request)
{
	(void)request;
	return true;
}

/* What a connection can begin with. */
static const struct {
	void (*serve)(struct frame_conn *, const struct frame *, struct broker *broker);
	bool (*is_small)(const struct frame *); /* starts no process and is over soon; or NULL */
} verbs[FRAME_TYPE_END] = {
	[FRAME_HELLO] = { hello_serve, always },
	[FRAME_EXEC] = { exec_serve },
	[FRAME_CONTEXT] = { context_serve, context_is_end },
	[FRAME_ATTACH] = { exec_attach_serve, always },
	[FRAME_KILL_LEFT] = { exec_kill_left_serve, always },
	[FRAME_PORT] = { wait_port_serve },
	[FRAME_SHELL] = { shell_serve },
	[FRAME_SHELL_ASK] = { shell_ask_serve, always },
	[FRAME_SHELL_END] = { shell_end_serve, always },
	[FRAME_FILE] = { files_serve },
};

/* 1: it is there; 0: the peer left or said nothing; -1: it is not one. */
static int first_frame(struct frame_conn *p, int wait_ms, struct frame *ret, struct err *e)
{
	int n;

	while ((n = frame_conn_next(p, ret, e)) == 0) {
		struct pollfd fd = { p->fd, POLLIN, 0 };

		if (poll(&fd, 1, wait_ms) <= 0 || frame_conn_read(p) < 0)
			return 0;
	}
	if (n > 0 && !verbs[ret->type].serve)
		return err_set(e, ERR_INVALID, "a frame of type %u begins nothing", ret->type);
	return n;
}

void operation_run(int conn, struct broker *broker)
{
	cleanup(frame_conn_close) struct frame_conn p = { .fd = -1 };
	struct frame f = { 0 };
	struct err e;
	int n;

	frame_conn_open(&p, conn);
	n = user_make_as() < 0 ? err_sys(&e, errno, "take the ids of the image's user")
			       : first_frame(&p, FIRST_FRAME_MS, &f, &e);
	if (n > 0)
		verbs[f.type].serve(&p, &f, broker);
	else if (n < 0)
		frame_conn_refuse(&p, &e);
}

static void serve_small(int conn, struct broker *broker)
{
	cleanup(frame_conn_close) struct frame_conn p = { .fd = -1 };
	struct frame f;
	struct err e;
	int n;

	frame_conn_open(&p, conn);
	n = first_frame(&p, SPARE_FRAME_MS, &f, &e);
	if (n > 0 && verbs[f.type].is_small && verbs[f.type].is_small(&f))
		return verbs[f.type].serve(&p, &f, broker);
	if (n > 0)
		n = err_set(&e, ERR_LIMIT, "the sandbox has no room for another process");
	if (n < 0)
		frame_conn_refuse(&p, &e);
}

void operation_run_spare(int queue, struct broker *broker)
{
	struct broker_packet p = { .word = BROKER_SUBREAPER };
	int n, conn;

	if (tree_lacks_subreaper())
		p.word = BROKER_NO_SUBREAPER;
	(void)!broker_send(broker->fd, &p, -1); /* into an empty socket */
	do {
		struct pollfd wait = { queue, POLLIN, 0 };

		conn = -1;
		n = poll(&wait, 1, -1) > 0 ? broker_receive(queue, &p, &conn) : 0;
		if (conn >= 0)
			serve_small(conn, broker);
	} while (n >= 0);
}

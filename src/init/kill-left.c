/* KILL_LEFT: asks the processes of execs that have ended to kill what those left. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "init/exec.h"
#include "init/hub.h"

#define KILL_LEFT_MS 25000 /* for each of them to have done it */

/* Each of those that were asked says how many it killed, and closes its end. */
static int add_killed(int from, uint32_t *total)
{
	uint32_t killed;
	ssize_t n;

	do {
		struct pollfd wait = { from, POLLIN, 0 };

		if (poll(&wait, 1, KILL_LEFT_MS) == 0)
			return -1;
		n = recv(from, &killed, sizeof(killed), 0);
		*total += n == (ssize_t)sizeof(killed) ? killed : 0;
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	return 0;
}

static int kill_left_of(struct hub_packet *ask, int hub, uint32_t *total, struct err *e)
{
	cleanup(close_fd) int from = -1;
	int pair[2];
	enum hub_word answer;

	if (hub_pair(pair) < 0)
		return err_sys(e, errno, "make a socket");
	from = pair[0];
	ask->word = HUB_KILL_LEFT;
	answer = hub_ask(hub, ask, pair[1]);
	close_fd(&pair[1]);
	if (add_killed(from, total) < 0)
		return err_set(e, ERR_TIMEOUT, "what was left was not seen to end");
	if (answer != HUB_YES)
		return err_set(e, ERR_BUSY, "what was left cannot be reached now");
	return 0;
}

void exec_kill_left_serve(struct peer *p, const struct frame *request, int hub)
{
	struct reader r = reader_make(request->payload.data, request->payload.len);
	cleanup(buf_done) struct buf frame = buf_make(64);
	struct hub_packet ask = { 0 };
	uint32_t total = 0;
	struct err e;

	reader_str(&r, ask.attach.id, sizeof(ask.attach.id));
	if (!reader_done(&r))
		err_set(&e, ERR_INVALID, "an exec's id that cannot be read");
	if (!reader_done(&r) || kill_left_of(&ask, hub, &total, &e) < 0) {
		peer_refuse(p, &e);
		return;
	}
	frame_add_u32(&frame, FRAME_KILL_LEFT, total);
	peer_put_frame(p, &frame);
	if (peer_flush(p) < 0)
		return; /* it left first */
}

/* KILL_LEFT: asks the processes of execs that have ended to kill what those left. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "init/exec.h"
#include "init/pid1-broker.h"
#include "lib/errno-map.h"

#define KILL_LEFT_MS 25000 /* for each of them to have done it */
#define TRIES_MAX    300   /* for one that ends just now, and for what a killed one started */
#define TRY_WAIT_MS  10

/* Each of those that were asked says how many it killed, and closes its end. */
static int add_killed(int from, uint32_t *total, uint32_t *answers)
{
	uint32_t killed;
	ssize_t n;

	do {
		struct pollfd wait = { from, POLLIN, 0 };

		if (poll(&wait, 1, KILL_LEFT_MS) == 0)
			return -1;
		n = recv(from, &killed, sizeof(killed), 0);
		if (n == (ssize_t)sizeof(killed)) {
			*total += killed;
			++*answers;
		}
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	return 0;
}

/* 1: all that is left was seen to end; 0: not all of them said so; -1: it will not be seen. */
static int kill_left_once(const char *id, struct broker *broker, uint32_t *total, struct err *e)
{
	struct broker_packet ask = { .word = BROKER_KILL_LEFT };
	cleanup(close_fd) int from = -1;
	uint32_t answers = 0;
	enum broker_word word;
	int pair[2];

	memcpy(ask.attach.id, id, strlen(id) + 1);
	if (broker_pair(pair) < 0)
		return err_sys(e, errno, "make a socket");
	from = pair[0];
	word = broker_ask(broker, &ask, pair[1]);
	close_fd(&pair[1]);
	if (add_killed(from, total, &answers) < 0)
		return err_set(e, ERR_TIMEOUT, "what was left was not seen to end");
	if (word == BROKER_UNSEEN)
		return broker_unseen(e);
	return word == BROKER_YES && answers == ask.asked;
}

static int kill_left_of(const char *id, struct broker *broker, uint32_t *total, struct err *e)
{
	int n = 0;

	for (int i = 0; n == 0 && i < TRIES_MAX; i++) {
		n = kill_left_once(id, broker, total, e);
		if (n == 0)
			(void)poll(NULL, 0, TRY_WAIT_MS);
	}
	return n != 0 ? n : err_set(e, ERR_BUSY, "what was left cannot be reached now");
}

void exec_kill_left_serve(struct frame_conn *p, const struct frame *request, struct broker *broker)
{
	struct reader r = reader_make(request->payload.data, request->payload.len);
	cleanup(buf_done) struct buf frame = buf_make(64);
	char id[EXEC_ID_SIZE];
	uint32_t total = 0;
	struct err e;

	reader_str(&r, id, sizeof(id));
	if (!reader_done(&r))
		err_set(&e, ERR_INVALID, "an exec's id that cannot be read");
	if (!reader_done(&r) || kill_left_of(id, broker, &total, &e) < 0) {
		frame_conn_refuse(p, &e);
		return;
	}
	frame_add_u32(&frame, FRAME_KILL_LEFT, total);
	frame_conn_put_frame(p, &frame);
	if (frame_conn_flush(p) < 0)
		return; /* it left first */
}

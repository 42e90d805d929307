/* The holder of a context, in a process of its own; the test is pid 1, and its peers. */
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init/context-server.h"
#include "init/handover.h"
#include "test.h"

#define WAIT_MS 20000

struct world {
	pid_t holder;
	int pid1; /* our end of its hub */
	int run;  /* the connection of the run that is under way */
	struct buf in;
};

static void hold(int hub_fd, int conn)
{
	struct context_request q = { CONTEXT_RUN, CONTEXT_PYTHON, "one", 0, "", { 0 } };
	struct broker hub = { .fd = hub_fd };
	struct context_server h;
	struct err e;

	if (context_server_open(&h, &q, &hub, &e) < 0)
		_exit(1);
	context_server_run(&h, conn, 0);
	context_server_close(&h);
	_exit(0);
}

static void pair_make(int ret[2])
{
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ret) == 0);
}

static struct world open_world(void)
{
	struct world w = { .in = buf_make(65536) };
	int hub[2], run[2];

	CHECK(broker_pair(hub) == 0);
	pair_make(run);
	w.holder = fork();
	if (w.holder == 0) {
		close(hub[0]);
		close(run[0]);
		hold(hub[1], run[1]);
	}
	CHECK(w.holder > 0);
	close(hub[1]);
	close(run[1]);
	w.pid1 = hub[0];
	w.run = run[0];
	return w;
}

/* It ends by itself, once its context is gone. */
static void close_world(struct world *w)
{
	int status;

	close(w->run);
	close(w->pid1);
	CHECK(waitpid(w->holder, &status, 0) == w->holder);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	buf_done(&w->in);
}

/* As pid 1: a holder that leaves is told that its name is free. */
static void answer_hub(const struct world *w)
{
	struct broker_packet p;
	int fd = -1;

	if (broker_receive(w->pid1, &p, &fd) > 0 && p.word == BROKER_LEAVE) {
		p.word = BROKER_YES;
		CHECK(broker_send(w->pid1, &p, -1) == 0);
	}
}

static struct bytes wire_of(const struct buf *b)
{
	return (struct bytes){ (const uint8_t *)b->data, b->len };
}

/* Until a frame of this type has come on the run's connection; it is the last one. */
static void wait_frame(struct world *w, enum frame_type type, struct exec_exit *exit)
{
	struct frame f = { 0 };
	struct err e;
	char chunk[4096];
	ssize_t n;

	while (f.type != type) {
		struct pollfd fds[2] = { { w->run, POLLIN, 0 }, { w->pid1, POLLIN, 0 } };

		CHECK(poll(fds, 2, WAIT_MS) > 0); /* else it is not heard */
		if (fds[1].revents)
			answer_hub(w);
		if (!fds[0].revents)
			continue;
		n = read(w->run, chunk, sizeof(chunk));
		CHECK(n > 0);
		buf_add(&w->in, chunk, (size_t)n);
		while (f.type != type && (n = frame_next(wire_of(&w->in), &f, &e)) > 0) {
			if (f.type == FRAME_EXITED)
				CHECK_OK(exec_exit_decode(f.payload, exit, &e), &e);
			buf_drop(&w->in, (size_t)n);
		}
	}
}

/* pid 1 brings the holder one that wants this; our end of the way to it. */
static int bring(const struct world *w, enum context_verb verb)
{
	struct broker_packet p = { .word = BROKER_GIVE,
				   .attach = { .id = ":one", .offset = { verb } } };
	int pair[2];

	pair_make(pair);
	CHECK(broker_send(w->pid1, &p, pair[1]) == 0);
	close(pair[1]);
	return pair[0];
}

TEST(the_end_of_a_context_is_heard_during_a_run_from_one_that_says_no_more)
{
	struct world w = open_world();
	struct exec_exit exit = { 0 };
	int asks, waits;
	uint8_t word;

	wait_frame(&w, FRAME_RUN, &exit);
	waits = bring(&w, CONTEXT_RUN); /* neither has this one the time to say more */
	asks = bring(&w, CONTEXT_END);
	wait_frame(&w, FRAME_EXITED, &exit);
	CHECK_INT(exit.kind, EXEC_KILLED);
	CHECK(read(waits, &word, 1) == 1 && word == HANDOVER_DELETED);
	CHECK(read(asks, &word, 1) == 0); /* it is to ask again, and hears that there is none */
	close(asks);
	close(waits);
	close_world(&w);
}

TEST(one_that_ends_a_context_is_told_when_it_is_gone)
{
	struct handover h = { CONTEXT_END, 0 };
	struct world w = open_world();
	struct exec_exit exit = { 0 };
	int asks, conn[2];
	uint8_t head[FRAME_HEAD];

	pair_make(conn);
	wait_frame(&w, FRAME_RUN, &exit);
	asks = bring(&w, CONTEXT_END);
	if (fork() == 0)
		_exit(handover_give(asks, &h, conn[1]) == HANDOVER_TAKEN ? 0 : 1);
	wait_frame(&w, FRAME_EXITED, &exit);
	CHECK(recv(conn[0], head, sizeof(head), MSG_WAITALL) == FRAME_HEAD);
	CHECK_INT(head[0], FRAME_EXITED);
	close(asks);
	close(conn[0]);
	close(conn[1]);
	close_world(&w);
}

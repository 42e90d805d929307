#include "exec-world.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/exec/exec.h"
#include "berthd/journal/tail.h"
#include "lib/file.h"
#include "lib/packet.h"
#include "lib/str.h"
#include "lib/time.h"
#include "proto/node.h"
#include "test.h"

#define WAIT_MS 20000

struct berthd b;
struct journals js;
static struct sandbox_cache cache;
static char dir[] = "exec-world-test-XXXXXX";
static struct reactor *running;
static int listener, node = -1;
static int init = -1; /* the test's end of the connection that was asked for last */
static struct buf heard;
static size_t taken; /* of what was heard */

struct reactor *loop(void)
{
	return &b.reactors[0];
}

/* As berthd's own; what was posted is run by turn(). */
static void on_wake(uv_async_t *async)
{
	tails_run(container_of(async, struct reactor, wake));
}

struct reactor *other(void)
{
	return &b.reactors[1];
}

struct reactor *current(void)
{
	return running;
}

/* What was posted to the loop, until nothing is. */
static void run_jobs(struct reactor *r)
{
	while (r->done) {
		struct job *job = r->done;

		r->done = job->next;
		if (!r->done)
			r->done_last = &r->done;
		running = r;
		job->done(job);
		running = NULL;
	}
}

/* ---- berth-node: it connects, and says that nothing was used ---- */

static void answer(const struct node_head *h, int fd)
{
	cleanup(packets_done) struct packets out;
	struct buf packet = buf_make(NODE_PACKET_MAX);
	struct node_usage used = { 0 };

	packets_init(&out);
	node_encode(&packet, h->verb, NODE_REPLY, h->id, &used);
	packets_add(&out, &packet, fd);
	CHECK(packets_flush(&out, node) >= 0);
}

static void connect_init(const struct node_head *h)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	close_fd(&init);
	init = pair[0];
	buf_clear(&heard);
	taken = 0;
	answer(h, pair[1]);
	close_fd(&pair[1]);
}

static void play_node(void)
{
	uint8_t data[NODE_PACKET_MAX];
	struct pollfd p = { node, POLLIN, 0 };
	struct node_head h;
	struct err e;
	ssize_t n;
	int fd;

	if (node < 0 || poll(&p, 1, 0) <= 0)
		return;
	n = packet_receive(node, data, sizeof(data), &fd);
	CHECK(n > 0);
	CHECK_OK(node_head_decode((struct bytes){ data, (size_t)n }, &h, &e), &e);
	if (h.verb == NODE_CONNECT)
		connect_init(&h);
	else if (h.verb == NODE_USAGE || h.verb == NODE_KILLED)
		answer(&h, -1);
	else
		CHECK_STR(node_verb_row(h.verb)->name, "connect, usage or killed");
}

void turn(void)
{
	static uint64_t end;

	if (!end)
		end = time_mono_ms() + 3 * WAIT_MS;
	CHECK(time_mono_ms() < end); /* what a test waits for does not come */
	play_node();
	(void)uv_run(&loop()->loop, UV_RUN_NOWAIT);
	run_jobs(loop());
	run_jobs(other());
	usleep(1000);
}

/* ---- init ---- */

static void hear(void)
{
	char chunk[4096];
	ssize_t n = init < 0 ? 0 : recv(init, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n > 0)
		buf_add(&heard, chunk, (size_t)n);
}

struct bytes expect(enum frame_type type)
{
	uint64_t end = time_mono_ms() + WAIT_MS;
	struct frame f = { 0 };
	struct err e;
	ssize_t n = 0;

	while (n == 0 && time_mono_ms() < end) {
		turn();
		hear();
		n = frame_next((struct bytes){ (const uint8_t *)buf_str(&heard) + taken,
					       heard.len - taken },
			       &f, &e);
	}
	CHECK(n > 0);
	taken += (size_t)n;
	CHECK_INT(f.type, type);
	return f.payload;
}

void say(const struct buf *frame)
{
	CHECK(send(init, frame->data, frame->len, MSG_NOSIGNAL) == (ssize_t)frame->len);
}

void hang_up(void)
{
	close_fd(&init);
	init = -1;
}

bool is_hung_up(void)
{
	char byte;

	return recv(init, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* ---- all of it ---- */

static void open_node(struct reactor *r)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	snprintf(b.settings.node_socket, sizeof(b.settings.node_socket), "%s/node", dir);
	memcpy(at.sun_path, b.settings.node_socket, sizeof(b.settings.node_socket));
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(listen(listener, 4) == 0);
	node_link_open(&r->node, &r->loop, b.settings.node_socket);
	while (!r->node.up)
		turn();
	node = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(node >= 0);
}

static void open_loop(struct reactor *r)
{
	CHECK(uv_loop_init(&r->loop) == 0 && uv_async_init(&r->loop, &r->wake, on_wake) == 0);
	pthread_mutex_init(&r->lock, NULL);
	r->done_last = &r->done;
	r->read_buffer = xcalloc(1, REACTOR_READ_SIZE);
	r->berthd = &b;
}

static void remove_dir(void)
{
	struct err ignored;

	(void)!file_remove_tree(AT_FDCWD, dir, &ignored);
}

void world_open(void)
{
	struct sandbox sb = { .state = SANDBOX_READY, .generation = GENERATION, .version = 1 };
	struct err e;

	if (js.dir)
		return;
	CHECK(mkdtemp(dir) && atexit(remove_dir) == 0);
	heard = buf_make(1 << 20);
	CHECK_OK(journals_open(&js, dir, 1 << 20, &e), &e);
	sandbox_cache_init(&cache);
	CHECK(str_copy(sb.id, sizeof(sb.id), SANDBOX));
	CHECK(str_copy(sb.owner, sizeof(sb.owner), "me"));
	sandbox_cache_put(&cache, &sb);
	b.journals = &js;
	b.sandboxes = &cache;
	b.reactor_count = 2;
	b.settings.timer_divisor = 1;
	open_loop(loop());
	open_loop(other());
	open_node(loop());
}

void say_started(void)
{
	cleanup(buf_done) struct buf frame = buf_make(64);

	frame_add_u32(&frame, FRAME_STARTED, 42);
	say(&frame);
}

void say_exited(uint32_t code)
{
	cleanup(buf_done) struct buf record = buf_make(EXEC_EXIT_MAX);
	cleanup(buf_done) struct buf frame = buf_make(EXEC_EXIT_MAX + FRAME_HEAD);

	exec_exit_encode(&record, &(struct exec_exit){ .kind = EXEC_EXITED, .code = code });
	frame_add(&frame, FRAME_EXITED, record.data, record.len);
	say(&frame);
}

struct journal *begin_exec(const char *id, uint32_t flags)
{
	struct journal_head h = { .generation = GENERATION, .ask.flags = flags };
	struct journal *j;
	struct err e;

	world_open();
	CHECK(str_copy(h.owner, sizeof(h.owner), "me"));
	CHECK(str_copy(h.sandbox, sizeof(h.sandbox), SANDBOX));
	CHECK(str_copy(h.ask.id, sizeof(h.ask.id), id));
	strv_add(&h.ask.argv, "true");
	CHECK_OK(journal_create(&js, &h, &j, &e), &e);
	exec_go_on(loop(), j);
	(void)expect(FRAME_ATTACH);
	say_started();
	while (j->exec->phase != EXEC_RUNNING)
		turn();
	return j;
}

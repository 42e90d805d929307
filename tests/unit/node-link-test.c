/* berthd's link to a berth-node that the test plays itself, in the same thread. */
#include "berthd/runtime/node-link.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/time.h"
#include "test.h"

#define WAIT_MS  60000
#define SHORT_MS 300
/* Behind it every call with a deadline has been given up: the link adds a second of its own. */
#define LONG_MS  (4 * SHORT_MS + 2000)

struct world {
	char dir[64], path[96];
	uv_loop_t loop;
	struct node_link link;
	uint32_t deadlines[NODE_VERB_COUNT];
	int listener, peer;
};

struct told {
	int parts, dones;
	struct err why; /* code ERR_NONE: it was answered */
};

static void on_part(void *data, const union node_any *record)
{
	(void)record;
	((struct told *)data)->parts++;
}

static void on_done(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct told *t = data;

	(void)record, (void)fd;
	t->dones++;
	if (why)
		t->why = *why;
}

static const struct node_call_events events = { .on_part = on_part, .on_done = on_done };

static void turn(struct world *w)
{
	uv_run(&w->loop, UV_RUN_NOWAIT);
	usleep(1000);
}

static void pass_time(struct world *w, uint64_t ms)
{
	uint64_t end = time_mono_ms() + ms;

	while (time_mono_ms() < end)
		turn(w);
}

static void wait_done(struct world *w, const struct told *t)
{
	uint64_t end = time_mono_ms() + WAIT_MS;

	while (!t->dones && time_mono_ms() < end)
		turn(w);
	CHECK_INT(t->dones, 1);
}

static void world_make(struct world *w)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	snprintf(w->dir, sizeof(w->dir), "/tmp/node-link-XXXXXX");
	CHECK(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/s", w->dir);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", w->path);
	w->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	CHECK(bind(w->listener, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(listen(w->listener, 4) == 0);
	CHECK(uv_loop_init(&w->loop) == 0);
	for (int i = 0; i < NODE_VERB_COUNT; i++)
		w->deadlines[i] = SHORT_MS;
	w->link.deadlines = w->deadlines;
	node_link_open(&w->link, &w->loop, w->path);
	while (!w->link.up)
		turn(w);
	w->peer = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(w->peer >= 0);
}

static void world_done(struct world *w)
{
	node_link_close(&w->link);
	uv_run(&w->loop, UV_RUN_DEFAULT);
	CHECK(uv_loop_close(&w->loop) == 0);
	close(w->peer);
	close(w->listener);
	unlink(w->path);
	rmdir(w->dir);
}

/* The id of the next request that reaches the other side. */
static uint64_t receive(struct world *w)
{
	uint8_t data[NODE_PACKET_MAX];
	struct node_head h;
	struct err e;
	int fd;
	ssize_t n = packet_receive(w->peer, data, sizeof(data), &fd);

	CHECK(n > 0);
	CHECK_OK(node_head_decode((struct bytes){ data, (size_t)n }, &h, &e), &e);
	return h.id;
}

static void answer(struct world *w, enum node_verb verb, enum node_kind kind, uint64_t id,
		   const void *record)
{
	cleanup(buf_done) struct buf packet = buf_make(NODE_PACKET_MAX);

	node_encode(&packet, verb, kind, id, record);
	CHECK(send(w->peer, buf_str(&packet), packet.len, MSG_NOSIGNAL) == (ssize_t)packet.len);
}

TEST(a_call_past_its_deadline_is_unknown_and_its_late_answer_nobodys)
{
	static struct world w;
	struct node_target target = { .sandbox = "sb_c1_x", .generation = 1 };
	struct node_observation seen = { .sandbox = "sb_c1_x", .process = PRESENCE_ABSENT };
	struct told first = { 0 }, second = { 0 };
	uint64_t id;

	world_make(&w);
	node_call(&w.link, NODE_OBSERVE, &target, -1, &events, &first);
	id = receive(&w);
	wait_done(&w, &first);
	CHECK_INT(first.why.code, ERR_BUSY);
	CHECK(node_unanswered(&first.why));
	CHECK(w.link.up);

	w.deadlines[NODE_OBSERVE] = WAIT_MS;
	node_call(&w.link, NODE_OBSERVE, &target, -1, &events, &second);
	answer(&w, NODE_OBSERVE, NODE_REPLY, id, &seen);
	answer(&w, NODE_OBSERVE, NODE_REPLY, receive(&w), &seen);
	wait_done(&w, &second);
	CHECK_INT(second.why.code, ERR_NONE);
	CHECK_INT(first.dones, 1);
	world_done(&w);
}

TEST(each_part_of_a_list_sets_the_deadline_anew)
{
	static struct world w;
	struct node_cursor all = { .follow = 0 };
	struct node_observation seen = { .sandbox = "sb_c1_x" };
	struct told list = { 0 };
	uint64_t id;

	world_make(&w);
	node_call(&w.link, NODE_INVENTORY, &all, -1, &events, &list);
	id = receive(&w);
	for (int i = 0; i < 8; i++) {
		pass_time(&w, SHORT_MS + 50);
		answer(&w, NODE_INVENTORY, NODE_PART, id, &seen);
	}
	pass_time(&w, 50);
	CHECK_INT(list.parts, 8);
	CHECK_INT(list.dones, 0);
	wait_done(&w, &list);
	CHECK(node_unanswered(&list.why));
	world_done(&w);
}

TEST(a_call_that_follows_has_no_deadline_once_its_list_is_through)
{
	static struct world w;
	struct node_cursor all = { .follow = 1 };
	struct node_observation seen = { .sandbox = "sb_c1_x" }, through = { 0 };
	struct told follow = { 0 };
	uint64_t id;

	world_make(&w);
	node_call(&w.link, NODE_INVENTORY, &all, -1, &events, &follow);
	id = receive(&w);
	answer(&w, NODE_INVENTORY, NODE_PART, id, &seen);
	answer(&w, NODE_INVENTORY, NODE_PART, id, &through);
	pass_time(&w, LONG_MS);
	CHECK_INT(follow.dones, 0);
	answer(&w, NODE_INVENTORY, NODE_PART, id, &seen); /* news */
	pass_time(&w, LONG_MS);
	CHECK_INT(follow.parts, 3);
	CHECK_INT(follow.dones, 0);
	shutdown(w.peer, SHUT_RDWR);
	wait_done(&w, &follow);
	CHECK_INT(follow.why.code, ERR_BUSY);
	CHECK(!node_unanswered(&follow.why));
	world_done(&w);
}

TEST(a_list_that_is_followed_has_a_deadline_until_it_is_through)
{
	static struct world w;
	struct node_cursor all = { .follow = 1 };
	struct told follow = { 0 };

	world_make(&w);
	node_call(&w.link, NODE_INVENTORY, &all, -1, &events, &follow);
	wait_done(&w, &follow);
	CHECK(node_unanswered(&follow.why));
	world_done(&w);
}

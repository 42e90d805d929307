/* Names to addresses: what one box asks for does not keep its neighbours waiting. */
#include "egress/resolve.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"

#define ASKS_MAX 5000

/* A server of names that answers those that begin with 'b', and lets the others wait. */
struct server {
	int fd;
	uv_poll_t poll;
	char address[32];
};

static void on_question(uv_poll_t *poll, int status, int events)
{
	static const uint8_t record[] = { 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 5, 0, 4, 203, 0, 113, 10 };
	const struct server *s = poll->data;
	struct sockaddr_in from;
	socklen_t from_len = sizeof(from);
	struct sockaddr *peer = (struct sockaddr *)&from;
	uint8_t m[600];
	ssize_t n;

	(void)status, (void)events;
	n = recvfrom(s->fd, m, 512, MSG_DONTWAIT, peer, &from_len);
	if (n < 17 || m[13] != 'b')
		return;
	m[2] = 0x81;
	m[3] = 0x80;
	m[7] = 1;
	m[11] = 0; /* nothing additional, and the question is the last of it */
	memcpy(m + n, record, sizeof(record));
	n += (ssize_t)sizeof(record);
	CHECK_INT(sendto(s->fd, m, (size_t)n, 0, peer, from_len), n);
}

static void server_open(struct server *s, uv_loop_t *loop)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(s->fd >= 0 && bind(s->fd, (struct sockaddr *)&at, len) == 0);
	CHECK(getsockname(s->fd, (struct sockaddr *)&at, &len) == 0);
	snprintf(s->address, sizeof(s->address), "127.0.0.1:%u", ntohs(at.sin_port));
	uv_poll_init(loop, &s->poll, s->fd);
	s->poll.data = s;
	uv_poll_start(&s->poll, UV_READABLE, on_question);
}

struct world {
	uv_loop_t loop;
	struct server server;
	struct resolver resolver;
	struct resolve_ask asks[ASKS_MAX];
	size_t asked, answered;
	struct resolved last;
};

static struct world w;

static void world_open(void)
{
	struct err e;

	CHECK_INT(uv_loop_init(&w.loop), 0);
	server_open(&w.server, &w.loop);
	CHECK_OK(resolver_open(&w.resolver, &w.loop, w.server.address, &e), &e);
}

static void on_found(struct resolve_ask *ask, const struct resolved *r)
{
	(void)ask;
	if (r->count == 0)
		return; /* one that was not answered in time */
	w.answered++;
	w.last = *r;
}

static int ask(uint32_t owner, char first, struct err *e)
{
	char name[32];
	struct resolve_ask *a = &w.asks[w.asked];

	CHECK(w.asked < ASKS_MAX);
	snprintf(name, sizeof(name), "%c%zu.example.com", first, w.asked);
	a->done = on_found;
	if (resolve(&w.resolver, owner, name, a, e) < 0)
		return -1;
	w.asked++;
	(void)uv_run(&w.loop, UV_RUN_NOWAIT); /* the server's socket has little room */
	return 0;
}

TEST(one_box_does_not_take_the_lookups_of_its_neighbours)
{
	struct err e;

	world_open();
	for (int i = 0; i < RESOLVE_OWNER_MAX; i++)
		CHECK_OK(ask(1, 'a', &e), &e);
	CHECK_ERR(ask(1, 'a', &e), &e, ERR_BUSY);
	CHECK_OK(ask(2, 'b', &e), &e);
	while (w.answered == 0)
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_INT(w.last.count, 1);
	CHECK_INT(w.last.addresses[0], 0xcb00710a);
	CHECK_ERR(ask(1, 'a', &e), &e, ERR_BUSY);
}

TEST(of_many_boxes_that_take_all_they_can_the_next_still_gets_one)
{
	struct err e;
	uint32_t owner;

	world_open();
	for (owner = 1; owner <= 24; owner++)
		while (ask(owner, 'a', &e) == 0)
			;
	CHECK(w.resolver.count < RESOLVE_LOOKUPS_MAX);
	CHECK_OK(ask(owner, 'b', &e), &e);
	while (w.answered == 0)
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_INT(w.last.count, 1);
}

TEST(a_name_that_is_known_takes_no_share)
{
	struct resolve_ask again = { .done = on_found };
	struct err e;

	world_open();
	CHECK_OK(ask(2, 'b', &e), &e);
	while (ask(1, 'a', &e) == 0)
		;
	CHECK_OK(resolve(&w.resolver, 1, "b0.example.com", &again, &e), &e);
	while (w.answered < 2)
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_INT(w.resolver.held[2], 1);
}

TEST(what_is_forgotten_is_given_back)
{
	struct err e;

	world_open();
	CHECK_OK(ask(2, 'b', &e), &e);
	while (w.resolver.count > 0) /* it is remembered for RESOLVE_KEEP_MS */
		uv_run(&w.loop, UV_RUN_ONCE);
	CHECK_INT(w.answered, 1);
	CHECK_INT(w.resolver.held[2], 0);
}

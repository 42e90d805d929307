/* GET /v1/events before a follower that reads slowly: the loop and the client in one thread. */
#include "berthd/api/v1/events.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "berthd/api/v1/event-ring.h"
#include "berthd/runtime/berthd.h"
#include "lib/str.h"
#include "lib/time.h"
#include "test.h"

#define EVENTS  4000
#define WAIT_MS 60000
#define MARK    8192
#define PADDING "................................................................................"

struct world {
	struct berthd *b;
	struct reactor *r;
	int client;
	struct buf got;
};

static void on_wake(uv_async_t *async)
{
	struct reactor *r = async->data;
	struct job *jobs = r->done, *next;

	r->done = NULL;
	r->done_last = &r->done;
	for (struct job *job = jobs; job; job = next) {
		next = job->next;
		job->done(job);
	}
}

static void on_request(struct http_exchange *x)
{
	struct request *rq = xcalloc(1, sizeof(*rq));

	rq->reactor = http_exchange_server(x)->data;
	rq->x = x;
	rq->path = xstrdup(x->path);
	rq->query = xstrdup(x->query);
	(void)!str_copy(rq->key.owner, sizeof(rq->key.owner), "one");
	events_follow(rq);
}

/* What is not read stays with the server: both buffers between are small. */
static int slow_client(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 2048, segment = 536;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
	CHECK(setsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, sizeof(segment)) == 0);
	CHECK(connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	return fd;
}

static void turn(struct world *w, bool reading)
{
	char data[4096];
	ssize_t n;

	uv_run(&w->r->loop, UV_RUN_NOWAIT);
	n = reading ? read(w->client, data, sizeof(data)) : 0;
	if (n > 0)
		buf_add(&w->got, data, (size_t)n);
	else
		usleep(200);
}

/* The word, and what it stands in to its end: a read may be cut anywhere. */
static bool has_whole(const struct world *w, const char *word)
{
	const char *at = strstr(buf_str(&w->got), word);

	return at && (strstr(at, "\n\n") || strstr(at, "\r\n\r\n"));
}

static void read_until(struct world *w, const char *word)
{
	uint64_t end = time_mono_ms() + WAIT_MS;

	while (!has_whole(w, word) && time_mono_ms() < end)
		turn(w, true);
	CHECK(has_whole(w, word));
}

static void world_make(struct world *w)
{
	static const struct reactor_hooks hooks = { .event = events_tell };
	static const char ask[] = "GET /v1/events HTTP/1.1\r\nHost: a\r\n\r\n";
	const struct http_limits limits = { .output_mark = MARK };
	struct err e;

	w->b = xcalloc(1, sizeof(*w->b));
	w->b->reactor_count = 1;
	w->b->hooks = &hooks;
	bus_open(&w->b->bus);
	w->b->bus.run = 77;
	w->r = &w->b->reactors[0];
	w->r->berthd = w->b;
	w->r->done_last = &w->r->done;
	w->got = buf_make(16UL << 20);
	pthread_mutex_init(&w->r->lock, NULL);
	CHECK(uv_loop_init(&w->r->loop) == 0);
	CHECK(uv_async_init(&w->r->loop, &w->r->wake, on_wake) == 0);
	w->r->wake.data = w->r;
	CHECK_OK(http_server_open(&w->r->server, &w->r->loop, "127.0.0.1:0", &limits, on_request,
				  &e),
		 &e);
	w->r->server.data = w->r;
	events_begin(w->r);
	w->client = slow_client(http_server_port(&w->r->server));
	CHECK(write(w->client, ask, sizeof(ask) - 1) == (ssize_t)sizeof(ask) - 1);
	read_until(w, ": following");
}

static void world_done(struct world *w)
{
	events_end(w->r);
	events_close(w->r);
	http_server_close(&w->r->server, 0, NULL);
	uv_close((uv_handle_t *)&w->r->wake, NULL);
	uv_run(&w->r->loop, UV_RUN_DEFAULT);
	CHECK(uv_loop_close(&w->r->loop) == 0);
	pthread_mutex_destroy(&w->r->lock);
	close(w->client);
	buf_done(&w->got);
	bus_close(&w->b->bus);
	free(w->b);
}

static void tell(struct world *w, const char *owner, unsigned n)
{
	cleanup(buf_done) struct buf json = buf_make(256);

	buf_addf(&json, "{\"n\":%u,\"padding\":\"" PADDING "\"}", n);
	bus_publish(w->b, &(struct bus_event){ .name = "sandbox",
					       .owner = owner,
					       .json = buf_str(&json) });
}

/* Reads the events as they stand; whether each number follows, with the gaps in between. */
static unsigned follow_numbers(const char *text, unsigned *gaps)
{
	unsigned next = 1;

	for (const char *at = text; (at = strstr(at, "data: {"));) {
		const char *n = strstr(at, "\"n\":"), *end = strchr(at, '}');
		const char *lost = strstr(at, "\"events\":");

		if (n && n < end)
			CHECK_INT(strtoul(n + 4, NULL, 10), next++);
		if (lost && lost < end) {
			next += (unsigned)strtoul(lost + 9, NULL, 10);
			++*gaps;
		}
		at = end;
	}
	return next;
}

TEST(who_reads_too_slowly_is_told_how_much_is_missing_and_where)
{
	struct world w = { 0 };
	unsigned gaps = 0;

	world_make(&w);
	for (unsigned i = 1; i <= EVENTS; i++) {
		tell(&w, "one", i);
		tell(&w, "another", 0); /* another's is neither sent nor missing */
		turn(&w, false);
	}
	read_until(&w, "event: gap");
	for (unsigned i = EVENTS + 1; i <= EVENTS + 10; i++) {
		tell(&w, "one", i);
		turn(&w, true);
	}
	read_until(&w, "\"n\":4010,\"padding\":\"" PADDING "\"}"); /* all of it */
	CHECK_INT(follow_numbers(buf_str(&w.got), &gaps), EVENTS + 11);
	CHECK(gaps >= 1);
	world_done(&w);
}

TEST(who_reads_in_time_misses_nothing)
{
	struct world w = { 0 };
	unsigned gaps = 0;

	world_make(&w);
	for (unsigned i = 1; i <= 100; i++) {
		tell(&w, "one", i);
		turn(&w, true);
	}
	read_until(&w, "\"n\":100,\"padding\":\"" PADDING "\"}");
	CHECK_INT(follow_numbers(buf_str(&w.got), &gaps), 101);
	CHECK_INT(gaps, 0);
	world_done(&w);
}

/* The client goes, and comes back with the last id it has seen. */
static void come_back(struct world *w, const char *target, const char *header)
{
	cleanup(buf_done) struct buf ask = buf_make(1024);

	close(w->client);
	w->client = slow_client(http_server_port(&w->r->server));
	buf_done(&w->got);
	w->got = buf_make(16UL << 20);
	buf_addf(&ask, "GET %s HTTP/1.1\r\nHost: a\r\n%s\r\n", target, header);
	CHECK(write(w->client, ask.data, ask.len) == (ssize_t)ask.len);
}

static void tell_some(struct world *w, unsigned from, unsigned to)
{
	for (unsigned i = from; i <= to; i++) {
		tell(w, "one", i);
		turn(w, true);
	}
}

TEST(who_comes_back_is_told_what_was_missed_once_and_in_order)
{
	struct world w = { 0 };

	world_make(&w);
	tell_some(&w, 1, 3);
	read_until(&w, "id: 77-3\nevent: sandbox\ndata: {\"n\":3");
	tell(&w, "another", 99);
	tell_some(&w, 4, 6); /* numbered 5 to 7 */
	come_back(&w, "/v1/events?after=1-1", "Last-Event-ID: 77-3\r\n");
	read_until(&w, "\"n\":6");
	CHECK(!strstr(buf_str(&w.got), "\"n\":3") && !strstr(buf_str(&w.got), "\"n\":99"));
	CHECK(!strstr(buf_str(&w.got), "event: gap"));
	CHECK(strstr(buf_str(&w.got), "\"n\":4") < strstr(buf_str(&w.got), "\"n\":5"));
	tell_some(&w, 7, 7);
	read_until(&w, "\"n\":7");
	come_back(&w, "/v1/events?after=77-9", ""); /* a loop that is behind the one that told it */
	read_until(&w, ": following");
	tell_some(&w, 8, 9);
	read_until(&w, "\"n\":9");
	CHECK(!strstr(buf_str(&w.got), "\"n\":8"));
	world_done(&w);
}

TEST(who_comes_back_too_late_is_told_of_a_gap)
{
	struct world w = { 0 };

	world_make(&w);
	tell_some(&w, 1, EVENT_RING_MAX + 10);
	come_back(&w, "/v1/events?after=77-9", "");
	read_until(&w, "event: gap");
	read_until(&w, "\"n\":11,");
	CHECK(!strstr(buf_str(&w.got), "\"n\":10,"));
	come_back(&w, "/v1/events?after=76-1030", ""); /* berthd was restarted since */
	read_until(&w, "event: gap");
	come_back(&w, "/v1/events?after=12", "");
	read_until(&w, "HTTP/1.1 400");
	world_done(&w);
}

TEST(what_happens_to_others_leaves_ones_own_events_there)
{
	struct world w = { 0 };

	world_make(&w);
	tell_some(&w, 1, 20);
	for (unsigned i = 0; i < 3 * EVENT_RING_MAX; i++) {
		tell(&w, "another", 99);
		turn(&w, false);
	}
	tell_some(&w, 21, 22);
	come_back(&w, "/v1/events?after=77-5", "");
	read_until(&w, "\"n\":22,");
	CHECK(strstr(buf_str(&w.got), "\"n\":6,") && strstr(buf_str(&w.got), "\"n\":20,"));
	CHECK(!strstr(buf_str(&w.got), "event: gap") && !strstr(buf_str(&w.got), "\"n\":99"));
	CHECK_INT(w.r->events->count, EVENT_RING_MAX);
	CHECK(event_ring_gap(w.r->events, "another", 5));
	CHECK(event_ring_gap(w.r->events, NULL, 5)); /* an admin's follower is told of all */
	CHECK(!event_ring_gap(w.r->events, "another", w.r->events->last));
	world_done(&w);
}

/* Neither has more than half when both have much, and the newest of each are there. */
TEST(two_owners_with_many_events_have_half_each)
{
	struct event_ring *ring = xcalloc(1, sizeof(*ring));
	struct buf text = buf_make(16);
	size_t of_one = 0;

	buf_adds(&text, "text");
	for (uint64_t i = 1; i <= 5UL * EVENT_RING_MAX; i++) {
		bool other = i <= EVENT_RING_MAX || i % 5;

		event_ring_put(ring, i, other ? "another" : "one", &text);
	}
	for (size_t i = 0; i < ring->count; i++) {
		of_one += strcmp(ring->kept[i].owner, "one") == 0;
		CHECK(i == 0 || ring->kept[i].number > ring->kept[i - 1].number);
	}
	CHECK_INT(ring->count, EVENT_RING_MAX);
	CHECK_INT(of_one, EVENT_RING_MAX / 2);
	CHECK_INT(ring->kept[ring->count - 1].number, ring->last);
	event_ring_done(ring);
	buf_done(&text);
	free(ring);
}

#include "http-site.h"
#include "http-vectors.h"
#include "http/parse.h"

#define HOST   " HTTP/1.1\r\nHost: a\r\n"
#define GET(p) "GET " p HOST "\r\n"
#define LAST   "Connection: close\r\n\r\n"

/* ---- what is malformed ---- */

static bool is_accepted(const char *answer)
{
	return strncmp(answer, "HTTP/1.1 2", 10) == 0 || strncmp(answer, "HTTP/1.1 404", 12) == 0;
}

static void try_vectors(bool collect_all)
{
	struct site s;
	int accepted = 0;

	site_open(&s, NULL);
	s.collect_all = collect_all;
	for (size_t i = 0; i < array_len(http_vectors); i++) {
		cleanup(buf_done) struct buf in = buf_make(1 << 20);
		int fd = dial(&s);

		say(fd, http_vectors[i].bytes, http_vectors[i].len);
		SAY(fd, "GET /json" HOST LAST);
		if (!hear(fd, &in, NULL) || is_accepted(buf_str(&in)) ||
		    strstr(buf_str(&in), "X-Good")) {
			printf("# accepted: %d %s: %.60s\n", http_vectors[i].number,
			       http_vectors[i].name, buf_str(&in));
			accepted++;
		}
		close(fd);
	}
	CHECK_INT(accepted, 0);
	site_close(&s);
}

TEST(no_malformed_request_is_accepted)
{
	CHECK_INT(array_len(http_vectors), 44);
	try_vectors(false);
}

TEST(nor_by_a_handler_that_reads_bodies)
{
	try_vectors(true);
}

static int never(llhttp_t *l)
{
	(void)l;
	return HPE_PAUSED;
}

/* These pass only in llhttp's other mode, and ours would stop them before it. */
TEST(llhttp_itself_is_strict)
{
	static const int numbers[] = { 16, 29, 35, 38 };
	llhttp_settings_t settings;
	llhttp_t l;

	llhttp_settings_init(&settings);
	settings.on_message_complete = never;
	for (size_t i = 0; i < array_len(numbers); i++) {
		size_t at = (size_t)numbers[i] - 1;

		CHECK_INT(http_vectors[at].number, numbers[i]);
		llhttp_init(&l, HTTP_REQUEST, &settings);
		CHECK(llhttp_execute(&l, http_vectors[at].bytes, http_vectors[at].len) !=
		      HPE_PAUSED);
		CHECK(llhttp_get_errno(&l) != HPE_OK);
	}
}

static void check_answer(struct site *s, const char *request, size_t len, const char *status)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	int fd = dial(s);

	say(fd, request, len);
	CHECK(hear(fd, &in, NULL));
	if (!str_starts(buf_str(&in), status))
		test_fail(__FILE__, __LINE__, "%.40s... answered %.60s", request, buf_str(&in));
	close(fd);
}

#define ANSWER(s, text, status) check_answer((s), (text), sizeof(text) - 1, "HTTP/1.1 " status)

#define CODED(as)               "POST /echo" HOST "Transfer-Encoding: " as "\r\n\r\n0\r\n\r\n"

TEST(what_is_no_request_of_ours_is_refused)
{
	struct site s;

	site_open(&s, NULL);
	ANSWER(&s, "ANNOUNCE /x RTSP/1.0\r\nHost: a\r\n\r\n", "505");
	ANSWER(&s, "GET /x\r\n\r\n", "");
	ANSWER(&s, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "");
	ANSWER(&s, "CONNECT a:1" HOST "\r\n", "400");
	ANSWER(&s, CODED(""), "400");
	ANSWER(&s, CODED("identity"), "400");
	ANSWER(&s, CODED("identity, chunked"), "400");
	ANSWER(&s, CODED("chunked, chunked"), "400");
	ANSWER(&s, CODED("chunked\r\nTransfer-Encoding: chunked"), "400");
	ANSWER(&s, "GET http://b/" HOST "\r\n", "400");
	CHECK_INT(s.requests, 0);
	site_close(&s);
}

TEST(a_head_too_long_is_431)
{
	static char longer[HTTP_HEAD_MAX], fields[HTTP_FIELDS_MAX * 8];
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct site s;

	site_open(&s, NULL);
	memset(longer, 'x', sizeof(longer));
	buf_adds(&b, "GET /json" HOST "X: ");
	buf_add(&b, longer, sizeof(longer));
	check_answer(&s, b.data, b.len, "HTTP/1.1 431");
	buf_clear(&b);
	buf_adds(&b, "GET /json" HOST);
	for (int i = 0; i < HTTP_FIELDS_MAX; i++)
		memcpy(fields + 8 * i, "X: abc\r\n", 8);
	buf_add(&b, fields, sizeof(fields));
	buf_adds(&b, LAST);
	check_answer(&s, b.data, b.len, "HTTP/1.1 431");
	CHECK_INT(s.requests, 0);
	site_close(&s);
}

/* ---- requests and replies ---- */

static int count(const struct buf *in, const char *what)
{
	int n = 0;

	for (const char *at = buf_str(in); (at = strstr(at, what)); at++)
		n++;
	return n;
}

static void check_talk(const char *request, const char *const *wanted)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	say(fd, request, strlen(request));
	CHECK(hear(fd, &in, NULL));
	for (; *wanted; wanted++)
		if (!strstr(buf_str(&in), *wanted))
			test_fail(__FILE__, __LINE__, "no \"%s\" in: %s", *wanted, buf_str(&in));
	close(fd);
	site_close(&s);
}

#define TALK(request, ...) check_talk((request), (const char *const[]){ __VA_ARGS__, NULL })

TEST(a_request_is_answered)
{
	TALK("GET /json" HOST LAST, "HTTP/1.1 200 OK\r\n", "X-Good: yes\r\n", "\r\n\r\n{}",
	     "Content-Length: 2\r\n", "Connection: close\r\n", "Date: ");
}

TEST(a_body_comes_whole_or_in_chunks)
{
	TALK("POST /echo" HOST "Content-Length: 5\r\n" LAST "hello", "\r\n\r\nhello");
	TALK("POST /echo" HOST "Transfer-Encoding: chunked\r\n" LAST
	     "3\r\nhel\r\n2;a=b\r\nlo\r\n0\r\n\r\n",
	     "\r\n\r\nhello");
	TALK("POST /echo" HOST LAST, "Content-Length: 0\r\n");
	TALK("POST /sip" HOST LAST, "\r\n\r\n0");
	TALK("POST /echo" HOST "Content-Length: 1048577\r\n\r\n", "HTTP/1.1 413 ");
}

TEST(head_has_no_body)
{
	TALK("HEAD /json" HOST "\r\nHEAD /stream?n=9" HOST "\r\nGET /none" HOST LAST,
	     "X-Good: yes\r\n\r\nHTTP/1.1 200", "chunked\r\n\r\nHTTP/1.1 404");
}

TEST(http_1_0_is_served_its_way)
{
	TALK("GET /stream?n=3 HTTP/1.0\r\n\r\n", "Connection: close\r\n", "\r\n\r\nxxx");
	TALK("GET /json HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /json HTTP/1.0\r\n\r\n",
	     "Connection: keep-alive\r\n", "{}HTTP/1.1 200 OK", "Connection: close\r\n");
}

TEST(a_malformed_request_behind_a_streamed_reply_is_refused_in_words)
{
	TALK("GET /stream?n=2" HOST "\r\nGET /json HTTP/1.1\r\nHost : a\r\n\r\n",
	     "xx\r\n0\r\n\r\nHTTP/1.1 400");
}

TEST(requests_sent_ahead_are_answered_in_turn)
{
	/* clang-format off */
	static const char requests[] =
		GET("/json")
		"POST /echo" HOST "Content-Length: 3\r\n\r\nabc"
		GET("/none")
		GET("/later")
		"POST /sip" HOST "Content-Length: 2\r\n\r\nab"
		GET("/stream?n=2")
		"POST /none" HOST "Content-Length: 4\r\n\r\nabcd"
		"GET /json" HOST LAST
		GET("/json");
	/* clang-format on */
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	say(fd, requests, sizeof(requests) - 1);
	CHECK(hear(fd, &in, NULL));
	CHECK_INT(count(&in, "HTTP/1.1 200"), 6);
	CHECK_INT(count(&in, "HTTP/1.1 404"), 2);
	CHECK_INT(s.requests, 8); /* the one after "close" is not looked at */
	close(fd);
	site_close(&s);
}

TEST(a_connection_serves_many_byte_by_byte)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	static const char request[] = "POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n"
				      "3\r\nabc\r\n0\r\n\r\n";
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	for (int i = 0; i < 3; i++) {
		for (size_t at = 0; at < sizeof(request) - 1; at++) {
			say(fd, request + at, 1);
			usleep(500);
		}
		buf_clear(&in);
		CHECK(hear(fd, &in, "\r\n\r\nabc"));
	}
	close(fd);
	site_close(&s);
}

TEST(continue_is_said_when_the_body_is_wanted)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, "POST /echo" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
	CHECK(hear(fd, &in, "100 Continue\r\n\r\n"));
	SAY(fd, "hello");
	CHECK(hear(fd, &in, "\r\n\r\nhello"));
	SAY(fd, "POST /none" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
	CHECK(hear(fd, &in, NULL));
	CHECK_INT(count(&in, "Continue"), 1);
	CHECK_INT(count(&in, "404"), 1);
	close(fd);
	site_close(&s);
}

TEST(a_body_nobody_reads_is_drained_or_ends_the_connection)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, "POST /none" HOST "Content-Length: 65536\r\n\r\n");
	say(fd, page, 65536);
	SAY(fd, GET("/json"));
	CHECK(hear(fd, &in, "{}"));
	SAY(fd, "POST /none" HOST "Content-Length: 65537\r\n\r\n");
	say(fd, page, 65536);
	SAY(fd, "x");
	SAY(fd, GET("/json"));
	buf_clear(&in);
	CHECK(hear(fd, &in, NULL));
	CHECK_INT(count(&in, "HTTP/1.1"), 1);
	CHECK_INT(count(&in, "Connection: close"), 1);
	close(fd);
	site_close(&s);
}

/* ---- back-pressure ---- */

#define MIB (1024 * 1024ULL)

TEST(a_slow_reader_does_not_fill_memory)
{
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, "GET /stream?n=100000000" HOST LAST);
	for (int i = 0; i < 3000 && s.streamed == 0; i++)
		usleep(10000);
	usleep(300000);
	CHECK(s.streamed > 0);
	CHECK(s.streamed < 20 * MIB); /* the kernel's buffers and the mark */
	CHECK(hear_all(fd, UINT64_MAX) > 100000000);
	CHECK(s.streamed == 100000000);
	close(fd);
	site_close(&s);
}

TEST(who_sends_ahead_must_read)
{
	static const char request[] = GET("/page");
	cleanup(buf_done) struct buf all = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	for (int i = 0; i < 1000; i++)
		buf_adds(&all, request);
	say(fd, all.data, all.len);
	for (int i = 0; i < 3000 && s.requests == 0; i++)
		usleep(10000);
	usleep(300000);
	CHECK(s.requests > 0 && s.requests < 320); /* 20 MiB: as above */
	CHECK(hear_all(fd, 1000 * sizeof(page)) >= 1000 * sizeof(page));
	CHECK(wait_for(&s.requests, 1000));
	close(fd);
	site_close(&s);
}

TEST(a_slow_handler_slows_the_sender)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd, room = 64 * 1024;

	site_open(&s, NULL);
	fd = dial(&s);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	SAY(fd, "POST /sip" HOST "Content-Length: 2097152\r\n" LAST);
	for (int i = 0; i < 32; i++)
		say(fd, page, sizeof(page));
	CHECK(hear(fd, &in, NULL));
	CHECK(strstr(buf_str(&in), "\r\n\r\n2097152"));
	close(fd);
	site_close(&s);
}

TEST(a_slow_sender_disturbs_nobody)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	static const char request[] = GET("/json");
	struct site s;
	uint64_t slowest = 0;
	int slow, fast;

	site_open(&s, NULL);
	slow = dial(&s);
	fast = dial(&s);
	for (size_t at = 0; at < sizeof(request) - 1; at++) {
		uint64_t begin = time_mono_us();

		say(slow, request + at, 1);
		buf_clear(&in);
		say(fast, request, sizeof(request) - 1);
		CHECK(hear(fast, &in, "{}"));
		if (time_mono_us() - begin > slowest)
			slowest = time_mono_us() - begin;
	}
	CHECK(hear(slow, &in, "{}"));
	CHECK(slowest < 20000000); /* it would wait for what is never sent */
	close(slow);
	close(fast);
	site_close(&s);
}

/* ---- the other protocol ---- */

#define UPGRADE "GET /" HOST "Connection: Upgrade\r\nUpgrade: echo\r\n\r\n"

static void *send_20_mib(void *arg)
{
	for (int i = 0; i < 320; i++)
		say(*(int *)arg, page, sizeof(page));
	return NULL;
}

TEST(an_upgraded_connection_echoes_20_mib)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	pthread_t sender;
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, UPGRADE "first");
	CHECK(hear(fd, &in, "\r\n\r\nfirst"));
	CHECK(str_starts(in.data, "HTTP/1.1 101 "));
	CHECK(strstr(in.data, "Upgrade: echo\r\nX-Good: tunnel\r\n\r\nfirst"));
	CHECK(pthread_create(&sender, NULL, send_20_mib, &fd) == 0);
	usleep(200000); /* let both directions fill up */
	CHECK(s.received < 20 * MIB);
	CHECK(hear_all(fd, 20 * MIB) == 20 * MIB);
	pthread_join(sender, NULL);
	usleep(10000);
	SAY(fd, "quit");
	buf_clear(&in);
	CHECK(hear(fd, &in, NULL));
	CHECK_STR(in.data, "bye");
	CHECK_INT(s.gone, 0);
	close(fd);
	site_close(&s);
}

TEST(a_tunnel_hears_of_its_end)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	int fd;

	site_open(&s, NULL);
	fd = dial(&s);
	SAY(fd, UPGRADE);
	CHECK(hear(fd, &in, "\r\n\r\n"));
	close(fd);
	CHECK(wait_for(&s.gone, 1));
	site_close(&s);
}

/* ---- the end ---- */

TEST(a_handler_hears_that_its_client_is_gone)
{
	static const char *const requests[] = {
		GET("/hang"),
		GET("/sse"),
		GET("/stream?n=1000000000"),
		GET("/hang") GET("/json"),
		"POST /echo" HOST "Content-Length: 9\r\n\r\nabc",
		"POST /sip" HOST "Content-Length: 9\r\n\r\nabc",
		"POST /echo" HOST "Transfer-Encoding: chunked\r\n\r\n1\r\nAX", /* malformed */
	};
	struct site s;

	site_open(&s, NULL);
	for (size_t i = 0; i < array_len(requests); i++) {
		int fd = dial(&s);

		say(fd, requests[i], strlen(requests[i]));
		CHECK(wait_for(&s.requests, (int)i + 1));
		close(fd);
		CHECK(wait_for(&s.gone, (int)i + 1));
	}
	site_close(&s);
}

TEST(also_while_it_reads_nothing)
{
	static const struct http_limits limits = { .stall_ms = 400 };
	struct site s;
	int fd;

	site_open(&s, &limits);
	fd = dial(&s);
	SAY(fd, "POST /stuck" HOST "Content-Length: 1000000\r\n\r\nx");
	CHECK(wait_for(&s.stuck, 1));
	say(fd, page, HTTP_AHEAD_MAX); /* after which reading stops */
	say(fd, page, 1000);
	usleep(300000);
	CHECK_INT(s.gone, 0);
	close(fd);
	CHECK(wait_for(&s.gone, 1));
	site_close(&s);
}

TEST(two_servers_share_an_address)
{
	struct site a, b;
	struct err e;
	uv_loop_t loop;
	char address[32];

	site_open(&a, NULL);
	snprintf(address, sizeof(address), "127.0.0.1:%d", http_server_port(&a.server));
	CHECK(uv_loop_init(&loop) == 0);
	CHECK_OK(http_server_open(&b.server, &loop, address, NULL, on_request, &e), &e);
	CHECK_INT(http_server_port(&b.server), http_server_port(&a.server));
	http_server_close(&b.server, 0, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&loop), 0);
	site_close(&a);
}

TEST(closing_ends_the_idle_and_breaks_the_rest)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	int idle, fresh, hung, sses[20];
	struct site s;

	site_open(&s, NULL);
	s.grace_ms = 200;
	idle = dial(&s);
	SAY(idle, GET("/json"));
	CHECK(hear(idle, &in, "{}"));
	fresh = dial(&s);
	hung = dial(&s);
	SAY(hung, GET("/hang"));
	for (size_t i = 0; i < array_len(sses); i++) {
		sses[i] = dial(&s);
		SAY(sses[i], GET("/sse"));
		buf_clear(&in);
		CHECK(hear(sses[i], &in, "hello"));
	}
	CHECK(wait_for(&s.requests, 22));
	site_close(&s);
	CHECK_INT(s.gone, 21);
	CHECK(hear(idle, &in, NULL));
	CHECK(hear(fresh, &in, NULL));
}

TEST(deadlines_hold)
{
	static const struct http_limits limits = {
		.head_ms = 1500, .idle_ms = 1500, .body_ms = 1500, .stall_ms = 2000
	};
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	int head, idle, body, fresh, lazy, sse_fd;
	struct site s;

	site_open(&s, &limits);
	fresh = dial(&s);
	head = dial(&s);
	SAY(head, "GET /js");
	idle = dial(&s);
	SAY(idle, GET("/json"));
	body = dial(&s);
	SAY(body, "POST /echo" HOST "Content-Length: 9\r\n\r\nabc");
	lazy = dial(&s);
	SAY(lazy, GET("/stream?n=1000000000"));
	sse_fd = dial(&s);
	SAY(sse_fd, GET("/sse"));

	CHECK(hear(fresh, &in, NULL));
	CHECK_INT(in.len, 0);
	CHECK(hear(head, &in, NULL));
	CHECK(str_starts(in.data, "HTTP/1.1 408 "));
	buf_clear(&in);
	CHECK(hear(idle, &in, NULL));
	CHECK(str_starts(in.data, "HTTP/1.1 200 "));
	buf_clear(&in);
	CHECK(hear(body, &in, NULL));
	CHECK(str_starts(in.data, "HTTP/1.1 408 "));
	CHECK(wait_for(&s.gone, 2)); /* the body's handler and the stream nobody reads */
	usleep(300000);
	CHECK_INT(s.gone, 2); /* an idle stream has no deadline */
	close(sse_fd);
	CHECK(wait_for(&s.gone, 3));
	close(lazy);
	site_close(&s);
}

/* A byte every 20 ms, as long as there is no answer. */
static void trickle(const struct http_limits *limits, size_t most)
{
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	struct site s;
	size_t sent = 0;
	char byte;
	int fd;

	site_open(&s, limits);
	fd = dial(&s);
	SAY(fd, "POST /echo" HOST "Content-Length: 500000\r\n\r\n");
	for (; sent < most && recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0; sent++) {
		SAY(fd, "x");
		usleep(20000);
	}
	CHECK(sent < most);
	CHECK(hear(fd, &in, NULL));
	CHECK(str_starts(in.data, "HTTP/1.1 408 "));
	CHECK_INT(s.gone, 1);
	close(fd);
	site_close(&s);
}

TEST(a_body_of_a_few_bytes_a_minute_has_an_end)
{
	trickle(&(struct http_limits){ .body_ms = 200, .body_least = 100 }, 400);
}

TEST(a_body_in_one_piece_is_whole_in_time)
{
	trickle(&(struct http_limits){ .body_ms = 200, .body_least = 1, .whole_ms = 500 }, 400);
}

/* What GET /sizes says, once it is at least so much; 0: it never is. */
static uint64_t size_of(int fd, const char *what, uint64_t least)
{
	for (int i = 0; i < 1000; i++) {
		cleanup(buf_done) struct buf in = buf_make(1 << 20);
		char digits[24] = "";
		const char *at;
		uint64_t n;
		struct err e;

		SAY(fd, GET("/sizes"));
		CHECK(hear(fd, &in, "!"));
		CHECK((at = strstr(buf_str(&in), what)));
		at += strlen(what);
		memcpy(digits, at, strspn(at, "0123456789"));
		CHECK_OK(str_u64(digits, &n, &e), &e);
		if (n >= least)
			return n;
		usleep(2000);
	}
	return 0;
}

/* Begins a body that is too long to be drained, and keeps back its last 10,000 bytes. */
static int begin_body(const struct site *s)
{
	int fd = dial(s);

	SAY(fd, "POST /echo" HOST "Content-Length: 70000\r\n\r\n");
	say(fd, page, 60000);
	return fd;
}

TEST(bodies_that_do_not_end_have_a_most)
{
	static const struct http_limits limits[] = { { .body_total = 150000 },
						     { .body_share = 150000 } };

	for (size_t i = 0; i < array_len(limits); i++) {
		cleanup(buf_done) struct buf in = buf_make(1 << 20);
		int one, two, three, look;
		struct site s;

		site_open(&s, &limits[i]);
		look = dial(&s);
		one = begin_body(&s);
		two = begin_body(&s);
		CHECK_INT(size_of(look, "bodies ", 120000), 120000);
		three = begin_body(&s);
		CHECK(hear(three, &in, "not complete"));
		CHECK(str_starts(in.data, "HTTP/1.1 503 "));
		close(two); /* there is room again */
		CHECK(wait_for(&s.gone, 1));
		buf_clear(&in);
		say(one, page, 10000);
		CHECK(hear(one, &in, "xxx"));
		CHECK(str_starts(in.data, "HTTP/1.1 200 "));
		CHECK_INT(size_of(look, "bodies ", 0), 0); /* also of what was answered */
		close(one);
		close(three);
		close(look);
		site_close(&s);
	}
}

TEST(what_is_read_ahead_has_a_most)
{
	static const struct http_limits limits = { .ahead_total = 65536 };
	int fds[40], look;
	struct site s;

	site_open(&s, &limits);
	look = dial(&s);
	for (size_t i = 0; i < array_len(fds); i++) {
		fds[i] = dial(&s);
		SAY(fds[i], GET("/hang"));
	}
	CHECK(wait_for(&s.requests, (int)array_len(fds)));
	for (size_t i = 0; i < array_len(fds); i++)
		say(fds[i], page, 60000);
	CHECK(size_of(look, "ahead ", limits.ahead_total) > 0);
	for (int i = 0; i < 10; i++) /* each a turn of the loop */
		CHECK(size_of(look, "ahead ", 1) <= limits.ahead_total + HTTP_READ_SIZE);
	for (size_t i = 0; i < array_len(fds); i++)
		close(fds[i]);
	close(look);
	site_close(&s);
}

TEST(who_sends_in_turn_needs_nothing_read_ahead)
{
	static const struct http_limits limits = { .ahead_total = 1 };
	cleanup(buf_done) struct buf in = buf_make(1 << 20);
	int hog, fd, look;
	struct site s;

	site_open(&s, &limits);
	look = dial(&s);
	hog = dial(&s);
	SAY(hog, GET("/hang") GET("/hang"));
	CHECK(size_of(look, "ahead ", 1) > 0);
	fd = dial(&s);
	SAY(fd, GET("/later"));
	SAY(fd, GET("/json"));
	CHECK(hear(fd, &in, "{}"));
	buf_clear(&in);
	SAY(fd, "POST /sip" HOST "Content-Length: 60000\r\n\r\n");
	say(fd, page, 60000);
	SAY(fd, GET("/json"));
	CHECK(hear(fd, &in, "{}"));
	close(fd);
	close(hog);
	close(look);
	site_close(&s);
}

TEST(one_connection_too_many_is_told)
{
	static const struct http_limits limits = { .connections = 1 };
	struct site s;
	int fd;

	site_open(&s, &limits);
	fd = dial(&s);
	usleep(50000);
	ANSWER(&s, "", "503");
	close(fd);
	site_close(&s);
}

/* ---- the target ---- */

TEST(segments_and_parameters_are_decoded_safely)
{
	const char *at = "v1/a%2Fb%20c/x+y", *bad = "%00", *cut = "%2", *dots = "%2e./x";
	bool found;
	char out[16];
	struct err e;

	CHECK_OK(http_segment(&at, out, sizeof(out), &e), &e);
	CHECK_STR(out, "v1");
	CHECK_OK(http_segment(&at, out, sizeof(out), &e), &e);
	CHECK_STR(out, "a/b c");
	CHECK_OK(http_segment(&at, out, sizeof(out), &e), &e);
	CHECK_STR(out, "x+y");
	CHECK_STR(at, "");
	CHECK_ERR(http_segment(&bad, out, sizeof(out), &e), &e, ERR_INVALID);
	CHECK_ERR(http_segment(&cut, out, sizeof(out), &e), &e, ERR_INVALID);
	CHECK_ERR(http_segment(&dots, out, sizeof(out), &e), &e, ERR_INVALID);
	at = "0123456789abcdef";
	CHECK_ERR(http_segment(&at, out, sizeof(out), &e), &e, ERR_INVALID);

	CHECK_OK(http_query("ab=1&a=x+y%21&b", "a", out, sizeof(out), &found, &e), &e);
	CHECK(found);
	CHECK_STR(out, "x y!");
	CHECK_OK(http_query("a=1&b", "b", out, sizeof(out), &found, &e), &e);
	CHECK(found);
	CHECK_STR(out, "");
	memset(out, 'x', sizeof(out));
	CHECK_OK(http_query("a=1", "c", out, sizeof(out), &found, &e), &e);
	CHECK(!found);
	CHECK_STR(out, ""); /* nothing of before is left to be read as a value */
}

TEST(an_address_must_be_one)
{
	static const char *const bad[] = { "", "127.0.0.1", "localhost:1", "[::1]", "]:1", "[:1",
					   "127.0.0.1:65536", "127.0.0.1:", ":1", "[:" };
	struct http_server server;
	uv_loop_t loop;
	struct err e;

	CHECK(uv_loop_init(&loop) == 0);
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(http_server_open(&server, &loop, bad[i], NULL, on_request, &e), &e,
			  ERR_INVALID);
	CHECK_INT(uv_loop_close(&loop), 0);
}

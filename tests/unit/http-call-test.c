/* Requests of ours, against our own server and against ones that break off. */
#include "http/call.h"

#include "http-site.h"

struct talk {
	uv_loop_t loop;
	struct http_call *call;
	uv_timer_t timer;
	struct buf got;
	uint64_t bytes;
	int status, reach; /* reach: -1 while it has not failed */
	bool ended, slow, tunnel, drained;
	char type[64];
	char why[200];
};

static void on_head(void *data, struct http_call *call)
{
	struct talk *t = data;
	const char *type = http_call_find(call, "content-type");

	t->status = http_call_status(call);
	snprintf(t->type, sizeof(t->type), "%s", type ? type : "");
	t->tunnel = t->status == 101;
	if (t->tunnel)
		(void)http_call_write(call, "quit", 4);
}

static void on_go_on(uv_timer_t *timer)
{
	http_call_resume(((struct talk *)timer->data)->call);
}

static void on_data(void *data, const char *bytes, size_t len)
{
	struct talk *t = data;

	t->bytes += len;
	if (t->got.len < 1000)
		buf_add(&t->got, bytes, len);
	if (t->slow) {
		http_call_pause(t->call);
		uv_timer_start(&t->timer, on_go_on, 1, 0);
	}
}

static void on_drain(void *data)
{
	((struct talk *)data)->drained = true;
}

static void on_end(void *data)
{
	struct talk *t = data;

	t->ended = true;
	uv_close((uv_handle_t *)&t->timer, NULL);
}

static void on_failed(void *data, enum http_call_reach reach, const struct err *e)
{
	struct talk *t = data;

	t->reach = (int)reach;
	snprintf(t->why, sizeof(t->why), "%s", e->msg);
	uv_close((uv_handle_t *)&t->timer, NULL);
}

static const struct http_call_events events = { on_head, on_data, on_drain, on_end, on_failed };

static void talk_begin(struct talk *t, int port, const char *head, bool chunked)
{
	char address[64];
	struct http_call_spec spec = { .address = address,
				       .head = head,
				       .head_len = strlen(head),
				       .chunked = chunked,
				       .connect_ms = 2000 };
	struct err e;

	*t = (struct talk){ .reach = -1, .got = buf_make(1 << 20) };
	snprintf(address, sizeof(address), "127.0.0.1:%d", port);
	CHECK(uv_loop_init(&t->loop) == 0);
	uv_timer_init(&t->loop, &t->timer);
	t->timer.data = t;
	CHECK_OK(http_call_open(&t->loop, &spec, &events, t, &t->call, &e), &e);
}

/* Nothing may be left on the loop. */
static void talk_run(struct talk *t)
{
	uv_run(&t->loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&t->loop), 0);
}

static void ask(struct talk *t, const struct site *s, const char *head)
{
	talk_begin(t, http_server_port(&s->server), head, false);
	talk_run(t);
}

TEST(a_reply_comes_back_whole)
{
	struct site s;
	struct talk t;

	site_open(&s, NULL);
	ask(&t, &s, "GET /json HTTP/1.1\r\nHost: x\r\n\r\n");
	CHECK(t.ended && t.status == 200);
	CHECK_STR(t.type, "application/json");
	CHECK_STR(buf_str(&t.got), "{}");
	buf_done(&t.got);
	site_close(&s);
}

TEST(a_slow_reader_gets_every_byte)
{
	struct site s;
	struct talk t;

	site_open(&s, NULL);
	talk_begin(&t, http_server_port(&s.server),
		   "GET /stream?n=3000000 HTTP/1.1\r\nHost: x\r\n\r\n", false);
	t.slow = true;
	talk_run(&t);
	CHECK(t.ended);
	CHECK_INT(t.bytes, 3000000);
	buf_done(&t.got);
	site_close(&s);
}

TEST(a_body_goes_out_in_chunks)
{
	struct site s;
	struct talk t;

	site_open(&s, NULL);
	talk_begin(&t, http_server_port(&s.server),
		   "POST /sip HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", true);
	for (int i = 0; i < 8; i++)
		CHECK(http_call_write(t.call, page, sizeof(page)) == (i >= 3));
	http_call_end_body(t.call);
	talk_run(&t);
	CHECK(t.ended && t.drained);
	CHECK_STR(buf_str(&t.got), "524288");
	buf_done(&t.got);
	site_close(&s);
}

TEST(a_connection_is_upgraded)
{
	struct site s;
	struct talk t;

	site_open(&s, NULL);
	ask(&t, &s, "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
	CHECK(t.ended && t.status == 101);
	CHECK_STR(buf_str(&t.got), "bye");
	buf_done(&t.got);
	site_close(&s);
}

/* A server that says something once, and goes. */
struct oracle {
	int fd, port;
	const char *says;
	pthread_t thread;
};

static void *oracle_run(void *arg)
{
	struct oracle *o = arg;
	char in[1024];
	int fd = accept(o->fd, NULL, NULL);

	CHECK(recv(fd, in, sizeof(in), 0) > 0);
	say(fd, o->says, strlen(o->says));
	close(fd);
	return NULL;
}

static void ask_oracle(struct talk *t, const char *says)
{
	struct oracle o = { .says = says };
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(sa);

	o.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(bind(o.fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 && listen(o.fd, 1) == 0);
	CHECK(getsockname(o.fd, (struct sockaddr *)&sa, &len) == 0);
	CHECK(pthread_create(&o.thread, NULL, oracle_run, &o) == 0);
	talk_begin(t, ntohs(sa.sin_port), "GET / HTTP/1.1\r\nHost: x\r\n\r\n", false);
	talk_run(t);
	pthread_join(o.thread, NULL);
	close(o.fd);
	buf_done(&t->got);
}

TEST(what_breaks_off_is_never_complete)
{
	static const struct {
		const char *says;
		enum http_call_reach reach;
	} cases[] = {
		{ "", CALL_SENT },
		{ "HTTP/1.1 200 OK\r\nContent-Le", CALL_SENT },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", CALL_REPLYING },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
		  CALL_REPLYING },
		{ "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall?", CALL_SENT },
		{ "SSH-2.0-nothing\r\n\r\n", CALL_SENT },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct talk t;

		ask_oracle(&t, cases[i].says);
		CHECK(!t.ended);
		CHECK_INT(t.reach, cases[i].reach);
		CHECK(t.why[0]);
	}
}

TEST(a_continue_is_not_the_reply)
{
	struct talk t;

	ask_oracle(&t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n");
	CHECK(t.ended && t.status == 204);
}

TEST(where_nobody_listens_nothing_was_sent)
{
	struct talk t;

	talk_begin(&t, 1, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", false);
	talk_run(&t);
	CHECK_INT(t.reach, CALL_NOT_SENT);
	buf_done(&t.got);
}

TEST(a_call_that_is_closed_says_nothing_more)
{
	struct site s;
	struct talk t;

	site_open(&s, NULL);
	talk_begin(&t, http_server_port(&s.server), "GET /hang HTTP/1.1\r\nHost: x\r\n\r\n", false);
	uv_run(&t.loop, UV_RUN_ONCE);
	http_call_close(t.call);
	uv_close((uv_handle_t *)&t.timer, NULL);
	talk_run(&t);
	CHECK(!t.ended && t.reach == -1);
	buf_done(&t.got);
	site_close(&s);
}

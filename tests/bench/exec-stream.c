/*
 * exec-stream PORT KEY SANDBOX ARG...
 *
 * Runs the command through the API on an upgraded connection and prints how
 * many bytes of standard output came. Its output must be the pattern, unless
 * BENCH_ANY is set; fails at the first wrong byte or if the command failed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pattern.h"
#include "proto/exec.h"
#include "proto/frame.h"

#define ROOM ((size_t)4 * (FRAME_HEAD + FRAME_PAYLOAD_MAX))

struct client {
	int fd;
	uint8_t *data;
	size_t start, end; /* what was read and not yet looked at */
	uint64_t offset;
	bool any, over;
};

static void die(const char *why)
{
	fprintf(stderr, "exec-stream: %s\n", why);
	exit(EXIT_FAILURE);
}

static void send_all(const struct client *c, const struct buf *out)
{
	if (send(c->fd, out->data, out->len, 0) != (ssize_t)out->len)
		die("could not send");
}

static void dial(struct client *c, const char *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)atoi(port)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	c->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		die("could not connect");
}

static void more(struct client *c)
{
	ssize_t n;

	if (ROOM - c->end < FRAME_HEAD + FRAME_PAYLOAD_MAX) {
		memmove(c->data, c->data + c->start, c->end - c->start);
		c->end -= c->start;
		c->start = 0;
	}
	n = recv(c->fd, c->data + c->end, ROOM - c->end, 0);
	if (n <= 0)
		die("the connection ended before the command");
	c->end += (size_t)n;
}

static void upgrade(struct client *c, const char *key, const char *sandbox)
{
	cleanup(buf_done) struct buf out = buf_make(4096);
	uint8_t *end;

	buf_addf(&out, "POST /v1/sandboxes/%s/exec HTTP/1.1\r\nHost: bench\r\n"
		       "Authorization: Bearer %s\r\nConnection: Upgrade\r\n"
		       "Upgrade: berth-exec\r\n\r\n",
		 sandbox, key);
	send_all(c, &out);
	while (!(end = memmem(c->data, c->end, "\r\n\r\n", 4)))
		more(c);
	if (memcmp(c->data, "HTTP/1.1 101", 12) != 0)
		die("no upgrade");
	c->start = (size_t)(end - c->data) + 4;
}

static void ask(struct client *c, char **argv)
{
	cleanup(exec_request_done) struct exec_request q = { 0 };
	cleanup(buf_done) struct buf record = buf_make(EXEC_BYTES_MAX), out = buf_make(
										EXEC_BYTES_MAX);

	for (; *argv; argv++)
		strv_add(&q.argv, *argv);
	exec_request_encode(&record, &q);
	frame_add(&out, FRAME_EXEC, record.data, record.len);
	send_all(c, &out);
}

static void take(struct client *c, const struct frame *f)
{
	struct exec_exit record;
	struct err e;

	if (f->type == FRAME_STDOUT) {
		if (!c->any && !pattern_ok(f->payload.data, f->payload.len, c->offset))
			die("a wrong byte");
		c->offset += f->payload.len;
	} else if (f->type == FRAME_EXITED) {
		if (exec_exit_decode(f->payload, &record, &e) < 0 || record.kind != EXEC_EXITED ||
		    record.code != 0)
			die("the command failed");
		c->over = true;
	} else if (f->type == FRAME_ERROR) {
		frame_error(f, &e);
		die(e.msg);
	}
}

static void take_frames(struct client *c)
{
	struct frame f;
	struct err e;
	ssize_t n;

	while (!c->over) {
		n = frame_next((struct bytes){ c->data + c->start, c->end - c->start }, &f, &e);
		if (n < 0)
			die(e.msg);
		if (n == 0)
			return;
		take(c, &f);
		c->start += (size_t)n;
	}
}

int main(int argc, char **argv)
{
	struct client c = { .data = xcalloc(1, ROOM), .any = getenv("BENCH_ANY") };

	if (argc < 5)
		return 2;
	dial(&c, argv[1]);
	upgrade(&c, argv[2], argv[3]);
	ask(&c, argv + 4);
	take_frames(&c);
	while (!c.over) {
		more(&c);
		take_frames(&c);
	}
	printf("%llu\n", (unsigned long long)c.offset);
	return EXIT_SUCCESS;
}

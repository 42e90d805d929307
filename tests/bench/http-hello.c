/*
 * The engine alone, for figures beside a bare web server: GET /json is a small
 * reply, GET /sse an idle stream. Prints its port; one loop; ends with SIGTERM.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "http/server.h"

static const char json[] =
	"{\"id\":\"sb_c1_0123456789abcdef\",\"state\":\"ready\",\"image\":\"python:3.12\","
	"\"runtime\":\"crun\",\"host\":\"h10\",\"generation\":1,\"memory_mb\":512,"
	"\"cpu_milli\":1000,\"pids\":256,\"disk_mb\":2048,\"a\":1}\n";

_Static_assert(sizeof(json) - 1 == 180, "the size the figures are for");

static void on_request(struct http_exchange *x)
{
	if (strcmp(x->path, "/json") == 0) {
		http_reply(x, 200, "application/json", json, sizeof(json) - 1);
	} else if (strcmp(x->path, "/sse") == 0) {
		http_stream_begin(x, 200, "text/event-stream");
		(void)http_stream_data(x, ": hello\n\n", 9);
	} else {
		http_reply(x, 404, NULL, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static const struct http_limits limits = { .connections = 100000 };
	struct http_server server;
	uv_loop_t loop;
	struct err e;

	if (uv_loop_init(&loop) != 0)
		return EXIT_FAILURE;
	if (http_server_open(&server, &loop, argc > 1 ? argv[1] : "127.0.0.1:0", &limits,
			     on_request, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return EXIT_FAILURE;
	}
	printf("%d\n", http_server_port(&server));
	fflush(stdout);
	return uv_run(&loop, UV_RUN_DEFAULT);
}

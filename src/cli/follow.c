#include "cli/follow.h"

#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"
#include "lib/file.h"
#include "lib/str.h"

static int put(struct follow *f, int fd, struct bytes b, struct err *e)
{
	int rc = 0;

	if (f->put)
		rc = f->put(f->arg, fd, b, e);
	else if (write_all(fd, b.data, b.len) < 0)
		rc = err_set(e, ERR_INTERNAL, "what it said cannot be written");
	f->failed = rc < 0;
	return rc;
}

static int on_output(struct follow *f, int fd, const struct json *event, struct err *e)
{
	cleanup(buf_done) struct buf raw = buf_make(SSE_EVENT_MAX);
	const char *coded = json_get_str(event, "data_base64");
	const char *text = json_get_str(event, "data");

	if (coded[0] && base64_decode(coded, &raw, e) < 0)
		return -1;
	if (!coded[0])
		buf_add(&raw, text, json_text_len(json_get(event, "data")));
	f->position = (uint64_t)json_get_int(event, "position") + raw.len;
	return put(f, fd, (struct bytes){ (const uint8_t *)raw.data, raw.len }, e);
}

static void on_gap(struct follow *f, const struct json *event)
{
	uint64_t bytes = (uint64_t)json_get_int(event, "bytes");

	f->position = (uint64_t)json_get_int(event, "position") + bytes;
	say("%" PRIu64 " bytes were not kept", bytes);
}

static void on_exit_event(struct follow *f, const struct json *event)
{
	const char *kind = json_get_str(event, "kind");

	f->ended = true;
	f->exit = (struct exec_exit){ .code = (uint32_t)json_get_int(event, "exit_code"),
				      .signum = (uint32_t)json_get_int(event, "signal") };
	for (int k = EXEC_NONE + 1; k < EXEC_KIND_COUNT; k++)
		if (strcmp(exec_kind_name((enum exec_kind)k), kind) == 0)
			f->exit.kind = (enum exec_kind)k;
}

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	cleanup(json_free) struct json *event = NULL;
	struct follow *f = arg;

	f->heard = true;
	if (json_parse_bytes(data, len, &event, e) < 0)
		return err_wrap(e, "the server's event");
	if (strcmp(name, "stdout") == 0)
		return on_output(f, STDOUT_FILENO, event, e);
	if (strcmp(name, "stderr") == 0)
		return on_output(f, STDERR_FILENO, event, e);
	if (strcmp(name, "gap") == 0)
		on_gap(f, event);
	if (strcmp(name, "exit") == 0)
		on_exit_event(f, event);
	return 0;
}

static int on_stream(void *arg, const char *data, size_t len, struct err *e)
{
	struct follow *f = arg;

	return sse_feed(&f->sse, data, len, e);
}

static bool on_tick(void *arg, uint64_t sent)
{
	struct follow *f = arg;

	return f->tick && f->tick(f->arg, sent);
}

int follow_once(struct follow *f, const struct context *c, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.accept = "text/event-stream",
		.body_fd = -1,
		.sink = on_stream,
		.tick = on_tick,
		.arg = f,
	};

	f->heard = f->broke = false;
	sse_done(&f->sse);
	sse_init(&f->sse);
	f->sse.on_event = on_event;
	f->sse.arg = f;
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, f->sandbox);
	buf_adds(&path, "/execs/");
	fetch_escape(&path, f->exec);
	buf_addf(&path, "/output?from=%" PRIu64 "%s", f->position, f->on ? "&follow=1" : "");
	if (client_fetch(c, buf_str(&path), &q, &reply, e) == 0)
		return 0;
	f->broke = reply.status == 0 && e->code == ERR_INTERNAL;
	return -1;
}

void follow_done(struct follow *f)
{
	sse_done(&f->sse);
}

void follow_pause(void)
{
	(void)poll(NULL, 0, FOLLOW_AGAIN_MS);
}

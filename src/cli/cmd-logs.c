/* berth logs: what a command said, from its beginning, and on as it goes on. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/say.h"
#include "cli/sse.h"
#include "lib/file.h"
#include "lib/str.h"

#define AGAIN_MAX 120 /* attempts to go on, */
#define AGAIN_MS  500 /* one after the other, while the server is not there */

struct logs_options {
	bool follow;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_FLAG, logs_options, follow, "follow", 'f', NULL, "until it ends"),
	OPTION_ROWS_END
};
/* clang-format on */

struct logs {
	struct sse sse;
	uint64_t position; /* to go on from */
	bool heard, ended;
	bool failed; /* to write it, and not to hear it */
};

static void logs_done(struct logs *l)
{
	sse_done(&l->sse);
}

static int put(int fd, const void *bytes, size_t len, struct err *e)
{
	if (write_all(fd, bytes, len) < 0)
		return err_set(e, ERR_INTERNAL, "what it said cannot be written");
	return 0;
}

static int on_output(struct logs *l, int fd, const struct json *event, struct err *e)
{
	cleanup(buf_done) struct buf raw = buf_make(SSE_EVENT_MAX);
	const char *coded = json_get_str(event, "data_base64");
	const char *text = json_get_str(event, "data");

	if (coded[0] && base64_decode(coded, &raw, e) < 0)
		return -1;
	if (!coded[0])
		buf_add(&raw, text, json_text_len(json_get(event, "data")));
	l->position = (uint64_t)json_get_int(event, "position") + raw.len;
	l->failed = put(fd, raw.data, raw.len, e) < 0;
	return l->failed ? -1 : 0;
}

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	cleanup(json_free) struct json *event = NULL;
	struct logs *l = arg;

	l->heard = true;
	if (json_parse_bytes(data, len, &event, e) < 0)
		return err_wrap(e, "the server's event");
	if (strcmp(name, "stdout") == 0)
		return on_output(l, STDOUT_FILENO, event, e);
	if (strcmp(name, "stderr") == 0)
		return on_output(l, STDERR_FILENO, event, e);
	if (strcmp(name, "gap") == 0) {
		uint64_t bytes = (uint64_t)json_get_int(event, "bytes");

		l->position = (uint64_t)json_get_int(event, "position") + bytes;
		say("%" PRIu64 " bytes were not kept", bytes);
	}
	if (strcmp(name, "exit") == 0)
		l->ended = true;
	return 0;
}

static int on_stream(void *arg, const char *data, size_t len, struct err *e)
{
	struct logs *l = arg;

	return sse_feed(&l->sse, data, len, e);
}

static int once(const struct context *c, const struct strv *args, bool follow, struct logs *l,
		struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.accept = "text/event-stream",
		.body_fd = -1,
		.sink = on_stream,
		.arg = l,
	};

	sse_done(&l->sse);
	sse_init(&l->sse);
	l->sse.on_event = on_event;
	l->sse.arg = l;
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, args->items[0]);
	buf_adds(&path, "/execs/");
	fetch_escape(&path, args->items[1]);
	buf_addf(&path, "/output?from=%" PRIu64 "%s", l->position, follow ? "&follow=1" : "");
	return client_fetch(c, buf_str(&path), &q, &reply, e);
}

/* A stream that breaks off is asked for again, from where it broke. */
static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct logs_options *o = given;
	cleanup(logs_done) struct logs l = { 0 };
	int rc = 0;

	sse_init(&l.sse);
	for (int again = 0; again < AGAIN_MAX; again++) {
		bool heard;

		l.heard = false;
		rc = once(c, args, o->follow, &l, e);
		heard = l.heard;
		if (l.failed || l.ended || (rc == 0 && !o->follow))
			return rc;
		if (rc < 0 && !heard && (again == 0 || e->code != ERR_BUSY))
			return rc; /* it was refused, or there never was a server */
		again = heard ? 0 : again;
		(void)poll(NULL, 0, AGAIN_MS); /* a server that comes back tells nobody */
	}
	return rc < 0 ? rc : err_set(e, ERR_BUSY, "the server does not go on");
}

const struct command cmd_logs = {
	.name = "logs",
	.usage = "[OPTIONS] ID EXEC",
	.help = "Print what a command said",
	.details = "Byte for byte, each stream to its own. Also after the sandbox is gone.",
	.options = options,
	.record_size = sizeof(struct logs_options),
	.min = 2,
	.max = 2,
	.run = run,
};

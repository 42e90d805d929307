/* berth events: what happens to sandboxes, as it happens. */
#include <string.h>

#include "cli/client.h"
#include "cli/plain.h"
#include "cli/say.h"
#include "cli/sse.h"
#include "lib/time.h"

#define LINE_MAX_BYTES (64UL * 1024)

struct follow {
	struct sse sse;
	bool json;
	bool following; /* it began, and what came could be told */
};

static void follow_done(struct follow *f)
{
	sse_done(&f->sse);
}

static int tell_refusal(struct buf *line, const struct json *ev, struct err *e)
{
	plain_add(line, json_get_str(ev, "sandbox"));
	buf_adds(line, "  refused  ");
	plain_add(line, json_get_str(ev, "kind"));
	buf_adds(line, " ");
	plain_add(line, json_get_str(ev, "name"));
	buf_addf(line, ":%lld\n", (long long)json_get_int(ev, "port"));
	return say_out(buf_str(line), line->len, e);
}

static int tell_gap(struct buf *line, const struct json *gap, struct err *e)
{
	buf_addf(line, "%lld events are missing here: they were not read in time\n",
		 (long long)json_get_int(gap, "events"));
	return say_out(buf_str(line), line->len, e);
}

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	const struct follow *f = arg;
	cleanup(json_free) struct json *tree = NULL;
	cleanup(buf_done) struct buf line = buf_make(LINE_MAX_BYTES);
	char now[TIME_TEXT_SIZE];
	const char *at;

	if (json_parse(data, len, &tree, e) < 0)
		return err_wrap(e, "the server's event");
	if (f->json) {
		buf_addf(&line, "%s\n", data);
	} else {
		time_text(time_wall_ms(), now); /* for a server that does not tell its own */
		at = json_get_str(tree, "at");
		plain_add(&line, at[0] ? at : now);
		buf_adds(&line, "  ");
		if (strcmp(name, "security") == 0)
			return tell_refusal(&line, tree, e);
		if (strcmp(name, "gap") == 0)
			return tell_gap(&line, tree, e);
		plain_add(&line, json_get_str(tree, "id")[0] ? json_get_str(tree, "id") : name);
		buf_adds(&line, "  ");
		plain_add(&line, json_get_str(tree, "state"));
		if (json_get_str(tree, "reason")[0])
			buf_adds(&line, "  ");
		plain_add(&line, json_get_str(tree, "reason"));
		buf_adds(&line, "\n");
	}
	return say_out(buf_str(&line), line.len, e);
}

static int on_stream(void *arg, const char *data, size_t len, struct err *e)
{
	struct follow *f = arg;

	f->following = sse_feed(&f->sse, data, len, e) == 0;
	return f->following ? 0 : -1;
}

static int run(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 }, again = { 0 };
	cleanup(follow_done) struct follow f = { .json = c->json };
	struct fetch_request q = {
		.accept = "text/event-stream",
		.body_fd = -1,
		.sink = on_stream,
		.arg = &f,
	};

	(void)options, (void)args;
	sse_init(&f.sse);
	f.sse.on_event = on_event;
	f.sse.arg = &f;
	/* A server that was killed breaks the stream off; one that stops ends it. */
	if (client_fetch(c, "/v1/events", &q, &reply, e) < 0 && !f.following)
		return -1;
	if (client_call(c, "GET", "/v1/host", NULL, &again, e) < 0 &&
	    e->code == ERR_UNAUTHENTICATED) /* it was revoked meanwhile */
		return -1;
	err_set(e, ERR_BUSY, "the server closed the stream of events");
	return err_fix(e, "It may be restarting: run `berth events` again.");
}

const struct command cmd_events = {
	.name = "events",
	.usage = "",
	.help = "Follow what happens to the sandboxes",
	.details = "With --json one object a line.",
	.run = run,
};

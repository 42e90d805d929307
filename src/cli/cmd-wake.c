/* berth wake, berth sleep: its processes, not its files. */
#include "cli/client.h"
#include "cli/say.h"

/* Every one is tried; the first failure is the one to tell. */
static int ask_all(const struct context *c, const struct strv *args, const char *verb,
		   struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < args->len; i++) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
		struct err why;

		buf_adds(&path, "/v1/sandboxes/");
		fetch_escape(&path, args->items[i]);
		buf_addf(&path, "/%s", verb);
		if (client_call(c, "POST", buf_str(&path), NULL, &reply, &why) < 0)
			rc = say_failure(rc, &why, c->json, e);
		else if (c->json && client_print(&reply, e) < 0)
			return -1;
	}
	return rc;
}

static int wake(const struct context *c, const void *options, const struct strv *args,
		struct err *e)
{
	(void)options;
	return ask_all(c, args, "wake", e);
}

static int sleep_(const struct context *c, const void *options, const struct strv *args,
		  struct err *e)
{
	(void)options;
	return ask_all(c, args, "sleep", e);
}

const struct command cmd_wake = {
	.name = "wake",
	.usage = "SANDBOX...",
	.help = "Start sandboxes that are asleep, or have failed, with their files",
	.details = "What ran in one that failed is lost; its files are as they were.",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = wake,
};

const struct command cmd_sleep = {
	.name = "sleep",
	.usage = "SANDBOX...",
	.help = "End the processes of sandboxes and keep their files",
	.details = "Whatever uses one wakes it.",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = sleep_,
};

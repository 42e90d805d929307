/* berth limits: what a sandbox may use, looked at and changed while it runs. */
#include <string.h>

#include "cli/client.h"
#include "cli/limits.h"
#include "cli/say.h"
#include "cli/table.h"

#define BODY_MAX 4096

static int show(const struct context *c, struct client_reply *reply, struct err *e)
{
	static const char *const titles[] = { "LIMIT", "VALUE", NULL };
	cleanup(table_done) struct table t = table_make(titles);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	const char *profile = json_get_str(reply->tree, "profile");
	char text[LIMIT_TEXT_SIZE];

	if (c->json) {
		buf_adds(&reply->text, "\n");
		return say_out(buf_str(&reply->text), reply->text.len, e);
	}
	table_add(&t, "profile");
	table_add(&t, profile[0] ? profile : "-");
	for (size_t i = 0; limit_names[i]; i++) {
		table_add(&t, limit_names[i]);
		table_add(&t, limit_text(reply->tree, limit_names[i], text));
	}
	table_print(&t, &out);
	if (!json_get_bool(reply->tree, "limits_in_force"))
		say("these are recorded, and not in force yet");
	return say_out(buf_str(&out), out.len, e);
}

static int run(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX), body = buf_make(BODY_MAX);
	bool change = args->len > 1;

	(void)options;
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, args->items[0]);
	buf_adds(&body, "{");
	if (limits_body(&body, args, 1, e) < 0)
		return -1;
	buf_adds(&body, "}");
	if (client_call(c, change ? "PATCH" : "GET", buf_str(&path),
			change ? buf_str(&body) : NULL, &reply, e) < 0)
		return -1;
	if (strcmp(json_get_str(reply.tree, "state"), "gone") == 0) {
		err_set(e, ERR_NOT_FOUND, "sandbox %s is gone", args->items[0]);
		return err_fix(e, "'berth usage %s' says what it used.", args->items[0]);
	}
	return show(c, &reply, e);
}

const struct command cmd_limits = {
	.name = "limits",
	.usage = "SANDBOX [NAME=NUMBER...]",
	.help = "Show what a sandbox may use, or change it while it runs",
	.details = "profile=NAME takes all limits of a profile; 0 is none, where that is allowed.",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = run,
};

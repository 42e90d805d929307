/* berth profile: limits by name. */
#include "cli/limits.h"
#include "cli/list.h"
#include "cli/say.h"

#define BODY_MAX 4096

static void add_row(struct table *t, const struct json *p)
{
	static const char *const shown[] = { "memory_mb", "cpu_milli", "cpu_ms", "wall_ms",
					     "disk_mb", "pids", "requests" };
	char text[LIMIT_TEXT_SIZE];

	table_add(t, json_get_str(p, "name"));
	for (size_t i = 0; i < array_len(shown); i++)
		table_add(t, limit_text(p, shown[i], text));
}

static const struct list profiles = {
	.member = "profiles",
	.titles = { "NAME", "MEMORY_MB", "CPU_MILLI", "CPU_MS", "WALL_MS", "DISK_MB", "PIDS",
		    "REQUESTS" },
	.add = add_row,
};

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options, (void)args;
	return list_show(c, "/v1/profiles", &profiles, e);
}

const struct command cmd_profile_ls = {
	.name = "profile ls",
	.usage = "",
	.help = "List the profiles",
	.run = ls,
};

static int add(const struct context *c, const void *options, const struct strv *args,
	       struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);

	(void)options;
	buf_adds(&body, "{");
	json_str(&body, "name", args->items[0]);
	if (limits_body(&body, args, 1, e) < 0)
		return -1;
	buf_adds(&body, "}");
	if (client_call(c, "POST", "/v1/profiles", buf_str(&body), &reply, e) < 0)
		return -1;
	if (!c->json)
		return 0;
	buf_adds(&reply.text, "\n");
	return say_out(buf_str(&reply.text), reply.text.len, e);
}

const struct command cmd_profile_add = {
	.name = "profile add",
	.usage = "NAME [LIMIT=NUMBER...]",
	.help = "Make a profile, or change one; sandboxes that are there keep what they have",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = add,
};

static int rm(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options;
	return client_remove_each(c, "/v1/profiles/", args, e);
}

const struct command cmd_profile_rm = {
	.name = "profile rm",
	.usage = "NAME...",
	.help = "Remove profiles",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

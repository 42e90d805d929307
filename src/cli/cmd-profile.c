/* berth profile: limits by name. */
#include "cli/client.h"
#include "cli/limits.h"
#include "cli/say.h"
#include "cli/table.h"

#define BODY_MAX 4096

static int print_json(struct client_reply *reply, struct err *e)
{
	buf_adds(&reply->text, "\n");
	return say_out(buf_str(&reply->text), reply->text.len, e);
}

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	static const char *const shown[] = { "memory_mb", "cpu_milli", "cpu_ms", "wall_ms",
					     "disk_mb", "pids", "requests" };
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(table_done) struct table t = table_make("NAME", "MEMORY_MB", "CPU_MILLI", "CPU_MS",
							"WALL_MS", "DISK_MB", "PIDS", "REQUESTS",
							NULL);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	const struct json *list;
	char text[LIMIT_TEXT_SIZE];

	(void)options, (void)args;
	if (client_call(c, "GET", "/v1/profiles", NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		return print_json(&reply, e);
	list = json_get(reply.tree, "profiles");
	for (size_t i = 0; i < json_len(list); i++) {
		table_add(&t, json_get_str(json_at(list, i), "name"));
		for (size_t k = 0; k < array_len(shown); k++)
			table_add(&t, limit_text(json_at(list, i), shown[k], text));
	}
	table_print(&t, &out);
	return say_out(buf_str(&out), out.len, e);
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
	return c->json ? print_json(&reply, e) : 0;
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

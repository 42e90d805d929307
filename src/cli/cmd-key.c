/* berth key: who may use the API. */
#include <string.h>

#include "cli/list.h"
#include "cli/say.h"

#define BODY_MAX 4096

struct create_options {
	const char *role;
};

/* clang-format off */
static const struct option_row create_options[] = {
	OPTION(OPTION_TEXT, create_options, role, "role", 0, "ROLE", "user (the default) or admin"),
	OPTION_ROWS_END
};
/* clang-format on */

static int create(const struct context *c, const void *given, const struct strv *args,
		  struct err *e)
{
	const struct create_options *o = given;
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);
	cleanup(buf_done) struct buf out = buf_make(BODY_MAX);

	buf_adds(&body, "{");
	json_str(&body, "name", args->items[0]);
	json_str(&body, "role", o->role ? o->role : "user");
	buf_adds(&body, "}");
	if (client_call(c, "POST", "/v1/keys", buf_str(&body), &reply, e) < 0)
		return -1;
	if (c->json)
		return client_print(&reply, e);
	say("%s: keep it now, it is not shown again", json_get_str(reply.tree, "id"));
	buf_addf(&out, "%s\n", json_get_str(reply.tree, "key"));
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_key_create = {
	.name = "key create",
	.usage = "NAME",
	.help = "Make an API key and print it once",
	.options = create_options,
	.record_size = sizeof(struct create_options),
	.min = 1,
	.max = 1,
	.run = create,
};

static void add_row(struct table *t, const struct json *key)
{
	table_add(t, json_get_str(key, "id"));
	table_add(t, json_get_str(key, "name"));
	table_add(t, json_get_str(key, "role"));
	table_addf(t, "%.19s", json_get_str(key, "created_at"));
}

static const struct list keys = { "keys", { "ID", "NAME", "ROLE", "CREATED" }, add_row };

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options, (void)args;
	return list_show(c, "/v1/keys", &keys, e);
}

const struct command cmd_key_ls = {
	.name = "key ls",
	.usage = "",
	.help = "List the API keys",
	.run = ls,
};

static int rm(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options;
	return client_remove_each(c, "/v1/keys/", args, e);
}

const struct command cmd_key_rm = {
	.name = "key rm",
	.usage = "ID...",
	.help = "Remove API keys",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

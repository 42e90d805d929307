/* berth key: who may use the API. */
#include <string.h>

#include "cli/client.h"
#include "cli/say.h"
#include "cli/table.h"

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

static int print_json(struct client_reply *reply, struct err *e)
{
	buf_adds(&reply->text, "\n");
	return say_out(buf_str(&reply->text), reply->text.len, e);
}

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
		return print_json(&reply, e);
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

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(table_done) struct table t = table_make("ID", "NAME", "ROLE", "CREATED", NULL);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	const struct json *list;

	(void)options, (void)args;
	if (client_call(c, "GET", "/v1/keys", NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		return print_json(&reply, e);
	list = json_get(reply.tree, "keys");
	for (size_t i = 0; i < json_len(list); i++) {
		const struct json *key = json_at(list, i);

		table_add(&t, json_get_str(key, "id"));
		table_add(&t, json_get_str(key, "name"));
		table_add(&t, json_get_str(key, "role"));
		table_addf(&t, "%.19s", json_get_str(key, "created_at"));
	}
	table_print(&t, &out);
	return say_out(buf_str(&out), out.len, e);
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

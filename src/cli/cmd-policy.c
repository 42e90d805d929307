/* berth policy: which sandbox an agent session gets. */
#include <string.h>

#include "cli/list.h"
#include "cli/say.h"

#define BODY_MAX 4096

struct add_options {
	const char *isolation, *profile, *runtime;
};

/* clang-format off */
static const struct option_row add_options[] = {
	OPTION(OPTION_TEXT, add_options, isolation, "isolation", 0, "WORD",
	       "per_session or shared"),
	OPTION(OPTION_TEXT, add_options, profile, "profile", 0, "NAME", "limits by name"),
	OPTION(OPTION_TEXT, add_options, runtime, "runtime", 'r', "RUNTIME", "crun or runsc"),
	OPTION_ROWS_END
};
/* clang-format on */

static int add(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct add_options *o = given;
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);
	cleanup(buf_done) struct buf out = buf_make(BODY_MAX);

	buf_adds(&body, "{");
	json_str(&body, "scope", args->items[0]);
	json_str(&body, "subject", args->items[1]);
	if (o->isolation)
		json_str(&body, "isolation", o->isolation);
	if (o->profile)
		json_str(&body, "profile", o->profile);
	if (o->runtime)
		json_str(&body, "runtime", o->runtime);
	buf_adds(&body, "}");
	if (client_call(c, "POST", "/v1/policies", buf_str(&body), &reply, e) < 0)
		return -1;
	if (c->json)
		return client_print(&reply, e);
	buf_addf(&out, "%lld\n", (long long)json_get_int(reply.tree, "id"));
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_policy_add = {
	.name = "policy add",
	.usage = "SCOPE SUBJECT",
	.help = "Decide which sandbox new agent sessions get; prints its number",
	.details = "SCOPE is global, org, user or session; SUBJECT whom it is about, or '*'.",
	.options = add_options,
	.record_size = sizeof(struct add_options),
	.min = 2,
	.max = 2,
	.run = add,
};

static void add_word(struct table *t, const char *word)
{
	table_add(t, word[0] ? word : "-");
}

static void add_row(struct table *t, const struct json *p)
{
	table_addf(t, "%lld", (long long)json_get_int(p, "id"));
	table_add(t, json_get_str(p, "scope"));
	table_add(t, json_get_str(p, "subject"));
	add_word(t, json_get_str(p, "isolation"));
	add_word(t, json_get_str(p, "profile"));
	add_word(t, json_get_str(p, "runtime"));
}

static const struct list policies = {
	"policies",
	{ "ID", "SCOPE", "SUBJECT", "ISOLATION", "PROFILE", "RUNTIME" },
	add_row,
};

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options, (void)args;
	return list_show(c, "/v1/policies", &policies, e);
}

const struct command cmd_policy_ls = {
	.name = "policy ls",
	.usage = "",
	.help = "List the policies",
	.run = ls,
};

static int rm(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options;
	return client_remove_each(c, "/v1/policies/", args, e);
}

const struct command cmd_policy_rm = {
	.name = "policy rm",
	.usage = "ID...",
	.help = "Remove policies; what was decided for a session stays",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

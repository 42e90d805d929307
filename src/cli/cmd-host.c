/* berth host: the hosts of the cell. */
#include "cli/list.h"
#include "cli/say.h"

static void add_row(struct table *t, const struct json *host)
{
	const struct json *has = json_get(host, "capacity"), *gave = json_get(host, "promised");

	table_add(t, json_get_str(host, "id"));
	table_add(t, json_get_str(host, "state"));
	table_addf(t, "%lld", (long long)json_get_int(host, "sandboxes"));
	table_addf(t, "%lld of %lld MB", (long long)json_get_int(gave, "memory_mb"),
		   (long long)json_get_int(has, "memory_mb"));
	table_addf(t, "%lld MB free", (long long)json_get_int(has, "disk_free_mb"));
	table_addf(t, "%lld", (long long)json_get_int(host, "epoch"));
	table_addf(t, "%.19s", json_get_str(host, "lease_until"));
	table_add(t, json_get_str(host, "address"));
}

static const struct list hosts = {
	"hosts",
	{ "ID", "STATE", "SANDBOXES", "MEMORY", "DISK", "EPOCH", "LEASE", "ADDRESS" },
	add_row,
};

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options, (void)args;
	return list_show(c, "/v1/hosts", &hosts, e);
}

const struct command cmd_host_ls = {
	.name = "host ls",
	.usage = "",
	.help = "List the hosts of the cell",
	.run = ls,
};

static int post(const struct context *c, const struct strv *args, const char *verb, struct err *e)
{
	for (size_t i = 0; i < args->len; i++) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

		buf_adds(&path, "/v1/hosts/");
		fetch_escape(&path, args->items[i]);
		buf_addf(&path, "/%s", verb);
		if (client_call(c, "POST", buf_str(&path), NULL, &reply, e) < 0)
			return err_wrap(e, "%s", args->items[i]);
		if (c->json && client_print(&reply, e) < 0)
			return -1;
	}
	return 0;
}

static int drain(const struct context *c, const void *options, const struct strv *args,
		 struct err *e)
{
	(void)options;
	return post(c, args, "drain", e);
}

const struct command cmd_host_drain = {
	.name = "host drain",
	.usage = "ID...",
	.help = "Have hosts take no new sandboxes",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = drain,
};

static int undrain(const struct context *c, const void *options, const struct strv *args,
		   struct err *e)
{
	(void)options;
	return post(c, args, "undrain", e);
}

const struct command cmd_host_undrain = {
	.name = "host undrain",
	.usage = "ID...",
	.help = "Have them take new ones again",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = undrain,
};

static const char *const facts[] = { "id", "state", "address", "lease_until",
				     "seen_at", "version" };
static const char *const amounts[] = { "cpus", "memory_mb", "memory_free_mb", "disk_mb",
				       "disk_free_mb" };

static int show(const struct context *c, const void *options, const struct strv *args,
		struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	const struct json *has;

	(void)options;
	buf_adds(&path, "/v1/hosts/");
	fetch_escape(&path, args->items[0]);
	if (client_call(c, "GET", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		return client_print(&reply, e);
	for (size_t i = 0; i < array_len(facts); i++)
		buf_addf(&out, "%-15s %s\n", facts[i], json_get_str(reply.tree, facts[i]));
	buf_addf(&out, "%-15s %lld\n", "epoch", (long long)json_get_int(reply.tree, "epoch"));
	buf_addf(&out, "%-15s %lld\n", "sandboxes",
		 (long long)json_get_int(reply.tree, "sandboxes"));
	has = json_get(reply.tree, "capacity");
	for (size_t i = 0; i < array_len(amounts); i++)
		buf_addf(&out, "%-15s %lld\n", amounts[i],
			 (long long)json_get_int(has, amounts[i]));
	buf_addf(&out, "%-15s %s\n", "runtimes", json_get_str(has, "runtimes"));
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_host_show = {
	.name = "host show",
	.usage = "ID",
	.help = "Look at one host",
	.min = 1,
	.max = 1,
	.run = show,
};

struct rm_options {
	bool powered_off;
};

/* clang-format off */
static const struct option_row rm_options[] = {
	OPTION(OPTION_FLAG, rm_options, powered_off, "powered-off", 0, NULL,
	       "they run nothing any more: you have seen to it"),
	OPTION_ROWS_END
};
/* clang-format on */

static int rm(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	const struct rm_options *o = options;

	for (size_t i = 0; i < args->len; i++) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

		buf_adds(&path, "/v1/hosts/");
		fetch_escape(&path, args->items[i]);
		if (o->powered_off)
			buf_adds(&path, "?confirm=powered-off");
		if (client_call(c, "DELETE", buf_str(&path), NULL, &reply, e) < 0)
			return err_wrap(e, "%s", args->items[i]);
	}
	return 0;
}

const struct command cmd_host_rm = {
	.name = "host rm",
	.usage = "[--powered-off] ID...",
	.help = "Say that lost hosts will not come back",
	.options = rm_options,
	.record_size = sizeof(struct rm_options),
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

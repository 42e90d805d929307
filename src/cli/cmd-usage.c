/* berth usage: what sandboxes used, also those that are gone. */
#include "cli/list.h"
#include "cli/say.h"

struct usage_options {
	bool fresh;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_FLAG, usage_options, fresh, "fresh", 0, NULL,
	       "of one sandbox: count its disk now, not as of some seconds ago"),
	OPTION_ROWS_END
};
/* clang-format on */

static void add_row(struct table *t, const struct json *u)
{
	static const char *const sizes[] = { "memory_average_bytes", "memory_peak_bytes",
					     "disk_peak_bytes" };
	const char *profile = json_get_str(u, "profile");
	char text[TABLE_SIZE_TEXT];

	table_add(t, json_get_str(u, "sandbox"));
	table_add(t, json_get_bool(u, "gone") ? "gone" : "there");
	table_add(t, profile[0] ? profile : "-");
	table_addf(t, "%.2f", (double)json_get_int(u, "cpu_ms") / 1000);
	for (size_t i = 0; i < array_len(sizes); i++) {
		table_size_text((uint64_t)json_get_int(u, sizes[i]), text);
		table_add(t, text);
	}
	table_addf(t, "%lld", (long long)json_get_int(u, "connections"));
	table_size_text((uint64_t)json_get_int(u, "bytes_out"), text);
	table_add(t, text);
}

static const struct list usages = {
	.member = "usage",
	.titles = { "SANDBOX", "STATE", "PROFILE", "CPU_S", "MEMORY_AVG", "MEMORY_PEAK",
		    "DISK_PEAK", "CONNECTIONS", "BYTES_OUT" },
	.add = add_row,
	.time = "since_at",
};

/* What it holds now, and when that was counted: a table of all has only the peaks. */
static void add_now(struct buf *out, const struct json *u)
{
	char text[TABLE_SIZE_TEXT];

	if (!json_get(u, "disk_bytes"))
		return;
	table_size_text((uint64_t)json_get_int(u, "disk_bytes"), text);
	if (json_get(u, "disk_at"))
		buf_addf(out, "disk now %s, counted at %s\n", text, json_get_str(u, "disk_at"));
	else
		buf_addf(out, "disk now %s, up to a minute behind (--fresh counts now)\n", text);
}

static int show(const struct context *c, const char *path, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(table_done) struct table t = table_make(usages.titles);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);

	if (client_call(c, "GET", path, NULL, &reply, e) < 0)
		return -1;
	if (c->json) {
		buf_adds(&reply.text, "\n");
		return say_out(buf_str(&reply.text), reply.text.len, e);
	}
	add_row(&t, reply.tree);
	table_print(&t, &out);
	add_now(&out, reply.tree);
	return say_out(buf_str(&out), out.len, e);
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	const struct usage_options *o = given;

	if (args->len == 0 && o->fresh)
		return err_set(e, ERR_INVALID, "--fresh is for one sandbox: give its ID");
	if (args->len == 0)
		return list_show(c, "/v1/usage?limit=500", &usages, e);
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, args->items[0]);
	buf_adds(&path, o->fresh ? "/usage?fresh=1" : "/usage");
	return show(c, buf_str(&path), e);
}

const struct command cmd_usage = {
	.name = "usage",
	.usage = "[OPTIONS] [SANDBOX]",
	.help = "Show what sandboxes used, also those that are gone",
	.details = "In the order of their beginning, the newest last.",
	.options = options,
	.record_size = sizeof(struct usage_options),
	.max = 1,
	.run = run,
};

/* berth usage: what sandboxes used, also those that are gone. */
#include <stdio.h>

#include "cli/client.h"
#include "cli/say.h"
#include "cli/table.h"

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

/* All pages; with --json each as it came. */
static int list(const struct context *c, struct table *t, struct err *e)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	char last[160] = "";

	do {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		const struct json *page;

		buf_clear(&path);
		buf_adds(&path, "/v1/usage?limit=500&after=");
		fetch_escape(&path, last);
		if (client_call(c, "GET", buf_str(&path), NULL, &reply, e) < 0)
			return -1;
		page = json_get(reply.tree, "usage");
		for (size_t i = 0; i < json_len(page); i++)
			add_row(t, json_at(page, i));
		snprintf(last, sizeof(last), "%s", json_get_str(reply.tree, "next"));
		if (c->json) {
			buf_adds(&reply.text, "\n");
			if (say_out(buf_str(&reply.text), reply.text.len, e) < 0)
				return -1;
		} else if (!last[0]) {
			const struct json *all = json_get(reply.tree, "totals");

			say("%lld sandboxes, %.2f s of CPU time",
			    (long long)json_get_int(all, "sandboxes"),
			    (double)json_get_int(all, "cpu_ms") / 1000);
		}
	} while (last[0]);
	return 0;
}

static int one(const struct context *c, const char *id, struct table *t, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, id);
	buf_adds(&path, "/usage");
	if (client_call(c, "GET", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	add_row(t, reply.tree);
	if (!c->json)
		return 0;
	buf_adds(&reply.text, "\n");
	return say_out(buf_str(&reply.text), reply.text.len, e);
}

static int run(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(table_done) struct table t = table_make("SANDBOX", "STATE", "PROFILE", "CPU_S",
							"MEMORY_AVG", "MEMORY_PEAK", "DISK_PEAK",
							"CONNECTIONS", "BYTES_OUT", NULL);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);

	(void)options;
	for (size_t i = 0; i < args->len; i++)
		if (one(c, args->items[i], &t, e) < 0)
			return -1;
	if (args->len == 0 && list(c, &t, e) < 0)
		return -1;
	if (c->json)
		return 0;
	table_print(&t, &out);
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_usage = {
	.name = "usage",
	.usage = "[ID...]",
	.help = "Show what sandboxes used, also those that are gone",
	.max = COMMAND_ARGS_ANY,
	.run = run,
};

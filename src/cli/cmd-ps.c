/* berth ps, berth rm: what is there, and away with it. */
#include <stdio.h>
#include <string.h>

#include "cli/sandbox.h"
#include "cli/say.h"
#include "cli/table.h"
#include "lib/str.h"

static void add_labels(struct table *t, const struct json *labels)
{
	cleanup(buf_done) struct buf text = buf_make(4096);
	const char *name, *value;

	for (size_t i = 0; json_member(labels, i, &name, &value); i++)
		buf_addf(&text, "%s%s=%s", i ? "," : "", name, value);
	table_add(t, buf_str(&text));
}

static void add_row(struct table *t, const struct json *s)
{
	char memory[TABLE_SIZE_TEXT];

	table_size_text((uint64_t)json_get_int(s, "memory_mb") << 20, memory);
	table_add(t, json_get_str(s, "id"));
	table_add(t, json_get_str(s, "name"));
	table_add(t, json_get_str(s, "state"));
	table_add(t, json_get_str(s, "image"));
	table_add(t, json_get_str(s, "runtime"));
	table_add(t, memory);
	table_addf(t, "%.1f", (double)json_get_int(s, "cpu_milli") / 1000);
	table_addf(t, "%.19s", json_get_str(s, "created_at"));
	add_labels(t, json_get(s, "labels"));
	table_add(t, json_get_str(s, "reason"));
}

static int show_page(const struct context *c, struct table *t, const struct client_reply *page,
		     struct err *e)
{
	const struct json *list = json_get(page->tree, "sandboxes");

	if (c->json && say_out(buf_str(&page->text), page->text.len, e) < 0)
		return -1;
	if (c->json)
		return say_out("\n", 1, e);
	for (size_t i = 0; i < json_len(list); i++)
		add_row(t, json_at(list, i));
	return 0;
}

static int ps(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(table_done) struct table t = table_make("ID", "NAME", "STATE", "IMAGE", "RUNTIME",
							"MEMORY",
							"CPUS", "CREATED", "LABELS", "NOTE", NULL);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	char after[SANDBOX_ID_SIZE] = "";

	(void)options, (void)args;
	do {
		cleanup(client_reply_done) struct client_reply page = { 0 };
		const char *next;

		if (sandbox_list(c, after, &page, e) < 0 || show_page(c, &t, &page, e) < 0)
			return -1;
		next = json_get_str(page.tree, "next");
		if ((next[0] && strcmp(next, after) == 0) || !str_copy(after, sizeof(after), next))
			return err_set(e, ERR_INTERNAL, "the server's list does not go on");
	} while (after[0]);
	if (c->json)
		return 0;
	table_print(&t, &out);
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_ps = {
	.name = "ps",
	.usage = "",
	.help = "List the sandboxes",
	.details = "With --json one object a line, one for each page of a hundred.",
	.run = ps,
};

struct rm_options {
	bool all;
};

/* clang-format off */
static const struct option_row rm_options[] = {
	OPTION(OPTION_FLAG, rm_options, all, "all", 'a', NULL, "every sandbox there is"),
	OPTION_ROWS_END
};
/* clang-format on */

/* Every one is tried; the first failure is the one to tell. */
static int remove_one(const struct context *c, const char *id, int so_far, struct err *e)
{
	struct err why;

	if (sandbox_delete(c, id, &why) == 0)
		return so_far;
	err_wrap(&why, "%s", id);
	if (so_far < 0) {
		say_error(&why);
		return -1;
	}
	*e = why;
	return -1;
}

/* What is listed is deleted, page by page; an id that stays listed ends it. */
static int remove_all(const struct context *c, struct err *e)
{
	char after[SANDBOX_ID_SIZE] = "";
	int rc = 0;

	do {
		cleanup(client_reply_done) struct client_reply page = { 0 };
		const struct json *list;

		if (sandbox_list(c, after, &page, e) < 0)
			return -1;
		list = json_get(page.tree, "sandboxes");
		for (size_t i = 0; i < json_len(list); i++)
			rc = remove_one(c, json_get_str(json_at(list, i), "id"), rc, e);
		if (!str_copy(after, sizeof(after), json_get_str(page.tree, "next")))
			return err_set(e, ERR_INTERNAL, "the server's list does not go on");
	} while (after[0]);
	return rc;
}

static int rm(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct rm_options *o = given;
	int rc = 0;

	if (o->all == (args->len > 0)) {
		err_set(e, ERR_INVALID, "rm: name the sandboxes, or say --all");
		return err_fix(e, "`berth ps` lists them.");
	}
	if (o->all)
		return remove_all(c, e);
	for (size_t i = 0; i < args->len; i++)
		rc = remove_one(c, args->items[i], rc, e);
	return rc;
}

const struct command cmd_rm = {
	.name = "rm",
	.usage = "ID... | --all",
	.help = "Delete sandboxes",
	.options = rm_options,
	.record_size = sizeof(struct rm_options),
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

/* berth ps, berth rm: what is there, and away with it. */
#include <stdio.h>
#include <string.h>

#include "cli/list.h"
#include "cli/sandbox.h"
#include "cli/say.h"

#define SANDBOXES "/v1/sandboxes?limit=100" /* a page */

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

static const struct list sandboxes = {
	"sandboxes",
	{ "ID", "NAME", "STATE", "IMAGE", "RUNTIME", "MEMORY", "CPUS", "CREATED", "LABELS",
	  "NOTE" },
	add_row,
};

static int ps(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options, (void)args;
	return list_show(c, SANDBOXES, &sandboxes, e);
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

struct removal {
	const struct context *c;
	int rc;
	struct err why;
};

static int remove_page(void *arg, const struct client_reply *page, struct err *e)
{
	const struct json *list = json_get(page->tree, sandboxes.member);
	struct removal *r = arg;

	(void)e; /* one that fails does not keep the others */
	for (size_t i = 0; i < json_len(list); i++)
		r->rc = remove_one(r->c, json_get_str(json_at(list, i), "id"), r->rc, &r->why);
	return 0;
}

static int remove_all(const struct context *c, struct err *e)
{
	struct removal r = { .c = c };

	if (list_pages(c, SANDBOXES, remove_page, &r, e) < 0)
		return -1;
	if (r.rc < 0)
		*e = r.why;
	return r.rc;
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

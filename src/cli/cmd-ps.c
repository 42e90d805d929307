/* berth ps, berth rm: what is there, and away with it. */
#include <stdio.h>
#include <string.h>

#include "cli/list.h"
#include "cli/sandbox.h"
#include "cli/say.h"
#include "lib/time.h"

#define SANDBOXES    "/v1/sandboxes?limit=100" /* a page */
#define LINE_COLUMNS 90

/* How old it is and how long it has left, by our clock. */
static void add_times(struct table *t, const struct json *s)
{
	const char *ends = json_get_str(s, "expires_at");
	char now[TIME_TEXT_SIZE], span[TABLE_SIZE_TEXT];

	time_text(time_wall_ms(), now);
	table_span_text(json_get_str(s, "created_at"), now, span);
	table_add(t, span);
	table_span_text(now, ends, span);
	table_add(t, ends[0] ? span : "-");
}

static void add_row(struct table *t, const struct json *s)
{
	table_add(t, json_get_str(s, "id"));
	table_add(t, json_get_str(s, "name"));
	table_add(t, json_get_str(s, "state"));
	table_add(t, json_get_str(s, "image"));
	table_add(t, json_get_str(s, "runtime"));
	add_times(t, s);
	table_add(t, json_get_str(s, "reason"));
}

/* clang-format off */
static const struct word_colour state_colours[] = {
	{ "ready",		COLOUR_GREEN },
	{ "asleep",		COLOUR_BLUE },
	{ "creating",		COLOUR_YELLOW },
	{ "waking",		COLOUR_YELLOW },
	{ "falling_asleep",	COLOUR_YELLOW },
	{ "deleting",		COLOUR_YELLOW },
	{ "failed",		COLOUR_RED },
	{ NULL }
};
/* clang-format on */

static const struct list sandboxes = {
	.member = "sandboxes",
	.titles = { "ID", "NAME", "STATE", "IMAGE", "RUNTIME", "AGE", "ENDS", "NOTE" },
	.add = add_row,
	.time = "created_at",
	.fit = LINE_COLUMNS,
	.coloured = "STATE",
	.colours = state_colours,
};

struct ps_options {
	const char *state;
	struct strv labels;
};

/* clang-format off */
static const struct option_row ps_options[] = {
	OPTION(OPTION_TEXT, ps_options, state, "state", 's', "STATE",
	       "only those that are ready, asleep, failed, ..."),
	OPTION(OPTION_LIST, ps_options, labels, "label", 'l', "NAME[=VALUE]",
	       "only those with this label; may be repeated: all must hold"),
	OPTION_ROWS_END
};
/* clang-format on */

static int ps(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	const struct ps_options *o = given;

	(void)args;
	buf_adds(&path, SANDBOXES);
	if (o->state) {
		buf_adds(&path, "&state=");
		fetch_escape(&path, o->state);
	}
	for (size_t i = 0; i < o->labels.len; i++) {
		buf_adds(&path, i ? "%2C" : "&selector=");
		fetch_escape(&path, o->labels.items[i]);
	}
	if (buf_overflowed(&path))
		return err_set(e, ERR_INVALID, "the labels are too long");
	return list_show(c, buf_str(&path), &sandboxes, e);
}

const struct command cmd_ps = {
	.name = "ps",
	.usage = "[OPTIONS]",
	.help = "List the sandboxes",
	.details = "The newest last. ENDS is how long until a sandbox is deleted for its age;\n"
		   "- is never. `berth show ID` has the rest. With --json one object a line,\n"
		   "one for each page of a hundred, in the order of ids.",
	.options = ps_options,
	.record_size = sizeof(struct ps_options),
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

static int print_receipt(const struct context *c, const struct client_reply *reply, struct err *e)
{
	cleanup(buf_done) struct buf line = buf_make(1024);

	if (c->json)
		return client_print(reply, e);
	if (reply->status == 202) /* there is none yet */
		return 0;
	buf_addf(&line, "%.60s gone: ", json_get_str(reply->tree, "id"));
	sandbox_receipt_text(&line, json_get(reply->tree, "receipt"));
	buf_adds(&line, "\n");
	return say_out(buf_str(&line), line.len, e);
}

/* Every one is tried; the first failure is the one to tell. */
static int remove_one(const struct context *c, const char *id, int so_far, struct err *e)
{
	cleanup(client_reply_done) struct client_reply receipt = { 0 };
	struct err why;

	if (sandbox_delete(c, id, &receipt, &why) == 0 && print_receipt(c, &receipt, &why) == 0)
		return so_far;
	if (why.code == ERR_NOT_FOUND)
		err_fix(&why, "Check the name; `berth ps` lists what there is, and `berth check` "
			      "what is on the host without a record.");
	else
		err_wrap(&why, "%s", id);
	return say_failure(so_far, &why, c->json, e);
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
	if (json_get_int(page->tree, "unreadable") > 0)
		r->rc = err_set(&r->why, ERR_INTERNAL,
				"not all are removed: some have records that cannot be read");
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
	.usage = "SANDBOX... | --all",
	.help = "Delete sandboxes and print the receipts",
	.details = "A receipt says what was seen gone; `berth show ID` shows it again later.",
	.options = rm_options,
	.record_size = sizeof(struct rm_options),
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

/* berth secret: credentials that are added to requests outside of sandboxes. */
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/say.h"
#include "cli/table.h"

#define VALUE_MAX 4096
#define BODY_MAX  (16UL * 1024)

struct set_options {
	const char *host, *header;
	struct strv methods, paths;
};

/* clang-format off */
static const struct option_row set_options[] = {
	OPTION(OPTION_TEXT, set_options, host, "host", 0, "NAME", "where it goes to"),
	OPTION(OPTION_TEXT, set_options, header, "header", 0, "NAME",
	       "the header it stands in (Authorization)"),
	OPTION(OPTION_LIST, set_options, methods, "method", 0, "METHOD",
	       "only with this one; may be repeated"),
	OPTION(OPTION_LIST, set_options, paths, "path", 0, "PATH",
	       "only there, or below it with a * at its end; may be repeated"),
	OPTION_ROWS_END
};
/* clang-format on */

/* From standard input: on a command line everybody could read it. */
static int read_value(struct buf *out, struct err *e)
{
	char piece[1024];
	ssize_t n;

	while ((n = read(STDIN_FILENO, piece, sizeof(piece))) > 0)
		buf_add(out, piece, (size_t)n);
	explicit_bzero(piece, sizeof(piece));
	while (out->len > 0 && strchr("\r\n", out->data[out->len - 1]))
		out->data[--out->len] = '\0';
	if (n < 0 || out->len == 0 || buf_overflowed(out))
		return err_set(e, ERR_INVALID, "the value comes on standard input, 8 to %d bytes",
			       VALUE_MAX - 1);
	return 0;
}

static void words_json(struct buf *out, const char *name, const struct strv *words)
{
	json_key(out, name);
	json_open(out, '[');
	for (size_t i = 0; i < words->len; i++) {
		if (i > 0)
			buf_adds(out, ",");
		json_add_string(out, words->items[i]);
	}
	buf_adds(out, "]");
}

static int set(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct set_options *o = given;
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf value = buf_make(VALUE_MAX - 1);
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	if (!o->host)
		return err_set(e, ERR_INVALID, "--host says where the secret goes to");
	if (read_value(&value, e) < 0)
		return -1;
	buf_adds(&body, "{");
	json_str(&body, "host", o->host);
	json_str(&body, "header", o->header ? o->header : "Authorization");
	json_str(&body, "value", buf_str(&value));
	words_json(&body, "methods", &o->methods);
	words_json(&body, "paths", &o->paths);
	buf_adds(&body, "}");
	buf_adds(&path, "/v1/secrets/");
	fetch_escape(&path, args->items[0]);
	if (client_call(c, "PUT", buf_str(&path), buf_str(&body), &reply, e) < 0)
		return -1;
	return c->json ? client_print(&reply, e) : 0;
}

const struct command cmd_secret_set = {
	.name = "secret set",
	.usage = "NAME",
	.help = "Keep a credential that is added to requests outside; reads it from standard input",
	.options = set_options,
	.record_size = sizeof(struct set_options),
	.min = 1,
	.max = 1,
	.run = set,
};

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	static const char *const titles[] = { "NAME", "HOST", "HEADER", "CHANGED", NULL };
	cleanup(table_done) struct table t = table_make(titles);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	const struct json *list;

	(void)options, (void)args;
	if (client_call(c, "GET", "/v1/secrets", NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		return client_print(&reply, e);
	list = json_get(reply.tree, "secrets");
	for (size_t i = 0; i < json_len(list); i++) {
		table_add(&t, json_get_str(json_at(list, i), "name"));
		table_add(&t, json_get_str(json_at(list, i), "host"));
		table_add(&t, json_get_str(json_at(list, i), "header"));
		table_add(&t, json_get_str(json_at(list, i), "changed_at"));
	}
	table_print(&t, &out);
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_secret_ls = {
	.name = "secret ls",
	.usage = "",
	.help = "List the secrets, without their values",
	.run = ls,
};

static int rm(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options;
	return client_remove_each(c, "/v1/secrets/", args, e);
}

const struct command cmd_secret_rm = {
	.name = "secret rm",
	.usage = "NAME...",
	.help = "Remove secrets; sandboxes that name them reach nothing until they do not",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

/* berth network: what a sandbox may reach, and what it was refused. */
#include <fcntl.h>
#include <string.h>

#include "cli/allow.h"
#include "cli/client.h"
#include "cli/say.h"
#include "cli/table.h"
#include "lib/file.h"

#define POLICY_MAX (64UL * 1024)

struct set_options {
	const char *file;
	bool open;
};

/* clang-format off */
static const struct option_row set_options[] = {
	OPTION(OPTION_TEXT, set_options, file, "file", 'f', "FILE", "a whole policy, as JSON"),
	OPTION(OPTION_FLAG, set_options, open, "open", 0, NULL,
	       "let it reach everything that is public, and no inner address"),
	OPTION_ROWS_END
};
/* clang-format on */

static void path_of(struct buf *out, const char *id, const char *rest)
{
	buf_adds(out, "/v1/sandboxes/");
	fetch_escape(out, id);
	buf_adds(out, rest);
}

static void rules_text(struct buf *out, const char *what, const struct json *list)
{
	for (size_t i = 0; i < json_len(list); i++) {
		const struct json *r = json_at(list, i), *methods = json_get(r, "methods");
		const struct json *paths = json_get(r, "paths"), *ports = json_get(r, "ports");

		buf_addf(out, "%-10s %s", what, json_get_str(r, "host"));
		for (size_t k = 0; k < json_len(ports); k++)
			buf_addf(out, "%c%lld", k ? ',' : ':',
				 (long long)json_number(json_at(ports, k)));
		for (size_t k = 0; k < json_len(methods); k++)
			buf_addf(out, " %s", json_text(json_at(methods, k)));
		for (size_t k = 0; k < json_len(paths); k++)
			buf_addf(out, " %s", json_text(json_at(paths, k)));
		buf_adds(out, "\n");
	}
}

static long long number(const struct json *object, const char *name)
{
	return (long long)json_get_int(object, name);
}

static void caps_text(struct buf *out, const struct json *tree)
{
	static const char *const caps[] = { "max_connections", "max_requests", "max_bytes_out" };
	const struct json *secrets = json_get(tree, "secrets");

	for (size_t i = 0; i < json_len(secrets); i++)
		buf_addf(out, "%-10s %s\n", "secret", json_text(json_at(secrets, i)));
	for (size_t i = 0; i < array_len(caps); i++)
		if (json_get(tree, caps[i]))
			buf_addf(out, "%-10s %s %lld\n", "at most", caps[i], number(tree, caps[i]));
}

/* What it amounts to, before the rules one by one. */
static void summary_text(struct buf *out, const struct json *tree)
{
	bool locked = strcmp(json_get_str(tree, "phase"), "locked") == 0;
	bool on = json_get_bool(tree, "in_force");
	const char *mode = json_get_str(tree, "mode");
	bool empty = json_len(json_get(tree, "rules")) == 0 &&
		     (locked || json_len(json_get(tree, "bootstrap")) == 0);

	buf_addf(out, "%-10s %s\n", "reaches",
		 empty && strcmp(mode, "allow") == 0 ? "nothing: the list is empty"
						     : allow_text(mode));
	buf_addf(out, "%-10s %s\n", "locked",
		 locked ? "yes: only an admin can change this" : "no: this can be changed");
	buf_addf(out, "%-10s %s%s\n", "in force", on ? "yes" : "no: ",
		 on ? "" : json_get_str(tree, "reason"));
}

static int print(const struct context *c, const struct client_reply *reply, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(POLICY_MAX * 2);
	const struct json *use = json_get(reply->tree, "usage");

	if (c->json)
		return client_print(reply, e);
	summary_text(&out, reply->tree);
	rules_text(&out, "allow", json_get(reply->tree, "rules"));
	rules_text(&out, "until lock", json_get(reply->tree, "bootstrap"));
	caps_text(&out, reply->tree);
	buf_addf(&out, "%-10s %lld connections, %lld requests, %lld bytes out, %lld bytes in\n",
		 "used", number(use, "connections"), number(use, "requests"),
		 number(use, "bytes_out"), number(use, "bytes_in"));
	return say_out(buf_str(&out), out.len, e);
}

static int call(const struct context *c, const char *method, const char *id, const char *rest,
		const char *body, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	path_of(&path, id, rest);
	if (client_call(c, method, buf_str(&path), body, &reply, e) < 0)
		return -1;
	return print(c, &reply, e);
}

static int show(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	(void)given;
	return call(c, "GET", args->items[0], "/network", NULL, e);
}

const struct command cmd_network_show = {
	.name = "network show",
	.usage = "SANDBOX",
	.help = "Say what a sandbox may reach, and whether that is in force",
	.min = 1,
	.max = 1,
	.run = show,
};

static int set(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct set_options *o = given;
	cleanup(buf_done) struct buf body = buf_make(POLICY_MAX);

	if (o->file && (args->len > 1 || o->open))
		return err_set(e, ERR_INVALID, "give either --file or rules, and not both");
	if (o->file) {
		if (file_read(AT_FDCWD, o->file, &body, e) < 0)
			return -1;
		return call(c, "PUT", args->items[0], "/network", buf_str(&body), e);
	}
	if (allow_policy(&body, o->open ? "open" : NULL, args, 1, e) < 0)
		return -1;
	return call(c, "PUT", args->items[0], "/network", buf_str(&body), e);
}

const struct command cmd_network_set = {
	.name = "network set",
	.usage = "SANDBOX [HOST[:PORT,...]]...",
	.help = "Let a sandbox reach these names; without any, nothing",
	.details = "A host is a name, *.NAME for all below it, or (admins only) an IPv4 address.",
	.options = set_options,
	.record_size = sizeof(struct set_options),
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = set,
};

static int lock(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	(void)given;
	return call(c, "POST", args->items[0], "/network/lock", NULL, e);
}

const struct command cmd_network_lock = {
	.name = "network lock",
	.usage = "SANDBOX",
	.help = "End the first phase: what is allowed until the lock, no longer is",
	.min = 1,
	.max = 1,
	.run = lock,
};

static int refused(const struct context *c, const void *given, const struct strv *args,
		   struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	static const char *const titles[] = { "AT", "KIND", "NAME", "PORT", "RULE", "COUNT", NULL };
	cleanup(table_done) struct table t = table_make(titles);
	const struct json *list;

	(void)given;
	path_of(&path, args->items[0], "/security");
	if (client_call(c, "GET", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		return client_print(&reply, e);
	list = json_get(reply.tree, "events");
	for (size_t i = 0; i < json_len(list); i++) {
		const struct json *ev = json_at(list, i);

		table_add(&t, json_get_str(ev, "at"));
		table_add(&t, json_get_str(ev, "kind"));
		table_add(&t, json_get_str(ev, "name"));
		table_addf(&t, "%lld", number(ev, "port"));
		table_add(&t, json_get_str(ev, "rule"));
		table_addf(&t, "%lld", number(ev, "count"));
	}
	table_print(&t, &out);
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_network_events = {
	.name = "network events",
	.usage = "SANDBOX",
	.help = "List what a sandbox was refused",
	.min = 1,
	.max = 1,
	.run = refused,
};

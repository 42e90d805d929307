/* berth check: do the records and this host agree, and if not, what then? */
#include <string.h>

#include "cli/client.h"
#include "cli/say.h"

#define TEXT_MAX    (4UL * 1024 * 1024)
#define EXIT_DIFFER 1
#define EXIT_UNSEEN 2 /* not everything could be seen: unknown is not well */

struct check_options {
	bool repair;
	const char *abandon;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_FLAG, check_options, repair, "repair", 0, NULL,
	       "carry out what the records intend already, and look again"),
	OPTION(OPTION_TEXT, check_options, abandon, "abandon", 0, "ID",
	       "remove what is on the host as this sandbox and has no record"),
	OPTION_ROWS_END
};
/* clang-format on */

static void add_clean(struct buf *out, const char *s)
{
	for (; *s; s++)
		buf_add(out, (unsigned char)*s < 0x20 || *s == 0x7f ? "?" : s, 1);
}

static void add_line(struct buf *out, const char *label, const char *text)
{
	if (!text[0])
		return;
	buf_addf(out, "    %-8s", label);
	add_clean(out, text);
	buf_adds(out, "\n");
}

static void add_finding(struct buf *out, const struct json *f)
{
	add_clean(out, json_get_str(f, "sentence"));
	buf_adds(out, "\n");
	add_line(out, "record", json_get_str(f, "record"));
	add_line(out, "fact", json_get_str(f, "fact"));
	if (json_get_str(f, "repair")[0])
		add_line(out, "repair", "berth check --repair does it now");
}

static bool is_unseen(const struct json *tree)
{
	const struct json *list = json_get(tree, "findings");

	for (size_t i = 0; i < json_len(list); i++)
		if (strcmp(json_get_str(json_at(list, i), "kind"), "unknown") == 0)
			return true;
	return false;
}

static void add_law(struct buf *out, const struct json *law)
{
	const char *why = json_get_str(law, "why");

	buf_addf(out, "%2lld %-11s %s%s%s%s\n", (long long)json_get_int(law, "number"),
		 json_get_str(law, "state"), json_get_str(law, "name"), why[0] ? " (" : "", why,
		 why[0] ? ")" : "");
}

static void add_all(struct buf *out, const struct json *tree)
{
	const struct json *list = json_get(tree, "findings"), *laws = json_get(tree, "invariants");
	size_t before = json_len(json_get(tree, "before"));

	for (size_t i = 0; i < json_len(list); i++)
		add_finding(out, json_at(list, i));
	for (size_t i = 0; i < json_len(laws); i++)
		add_law(out, json_at(laws, i));
	if (before > 0)
		buf_addf(out, "%zu differences before the repair.\n", before);
	buf_addf(out, "%lld records, %lld things on the host: %zu differences.\n",
		 (long long)json_get_int(tree, "records"), (long long)json_get_int(tree, "facts"),
		 json_len(list));
}

static void add_abandoned(struct buf *out, const struct json *tree)
{
	const struct json *sb = json_get(tree, "sandbox"), *receipt = json_get(sb, "receipt");

	add_clean(out, json_get_str(sb, "id"));
	if (receipt)
		buf_addf(out, " is gone from %s, seen at %s.\n", json_get_str(tree, "host"),
			 json_get_str(receipt, "observed_at"));
	else
		buf_addf(out, " is being deleted: %s. Next attempt at %s.\n",
			 json_get_str(sb, "reason"), json_get_str(sb, "next_attempt_at"));
	add_line(out, receipt ? "was" : "fact", json_get_str(tree, "found"));
}

static int abandon(const struct context *c, const char *id, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	cleanup(buf_done) struct buf out = buf_make(TEXT_MAX);

	buf_adds(&path, "/v1/check/abandon/");
	fetch_escape(&path, id);
	if (client_call(c, "POST", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		buf_addf(&out, "%s\n", buf_str(&reply.text));
	else
		add_abandoned(&out, reply.tree);
	if (say_out(buf_str(&out), out.len, e) < 0)
		return -1;
	return reply.status == 200 ? 0 : EXIT_DIFFER;
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct check_options *o = given;
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf out = buf_make(TEXT_MAX);

	(void)args;
	if (o->abandon && o->repair)
		return err_set(e, ERR_INVALID, "--repair and --abandon are two things: one by one");
	if (o->abandon)
		return abandon(c, o->abandon, e);
	if (client_call(c, o->repair ? "POST" : "GET", o->repair ? "/v1/check/repair" : "/v1/check",
			NULL, &reply, e) < 0) {
		say_error(e, c->json);
		return EXIT_UNSEEN;
	}
	if (c->json)
		buf_addf(&out, "%s\n", buf_str(&reply.text));
	else
		add_all(&out, reply.tree);
	if (say_out(buf_str(&out), out.len, e) < 0)
		return -1;
	if (is_unseen(reply.tree))
		return EXIT_UNSEEN;
	return json_get_bool(reply.tree, "ok") ? 0 : EXIT_DIFFER;
}

const struct command cmd_check = {
	.name = "check",
	.usage = "[--repair | --abandon ID]",
	.help = "Compare the records with what is on the host",
	.details = "The exit status is 0 if they agree, 1 if they differ, 2 if something could "
		   "not be seen. Needs a key of an admin. With --abandon it is 0 if all of the "
		   "sandbox is proven gone, 1 while it is not; what has a record is refused.",
	.options = options,
	.record_size = sizeof(struct check_options),
	.run = run,
};

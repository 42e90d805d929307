/* berth show: one sandbox, or the receipt of one that is gone. */
#include <inttypes.h>
#include <string.h>

#include "cli/plain.h"
#include "cli/sandbox.h"
#include "cli/say.h"
#include "cli/table.h"

/* clang-format off */
enum show_kind { SHOW_TEXT, SHOW_NUMBER, SHOW_MAP, SHOW_YES };
static const struct {
	const char *name;
	enum show_kind kind;
} members[] = {
	{ "id",			SHOW_TEXT },
	{ "name",		SHOW_TEXT },
	{ "state",		SHOW_TEXT },
	{ "reason",		SHOW_TEXT },
	{ "image",		SHOW_TEXT },
	{ "runtime",		SHOW_TEXT },
	{ "host",		SHOW_TEXT },
	{ "identity_key",	SHOW_TEXT },
	{ "profile",		SHOW_TEXT },
	{ "created_at",		SHOW_TEXT },
	{ "last_used_at",	SHOW_TEXT },
	{ "expires_at",		SHOW_TEXT },
	{ "memory_mb",		SHOW_NUMBER },
	{ "cpu_milli",		SHOW_NUMBER },
	{ "disk_mb",		SHOW_NUMBER },
	{ "pids",		SHOW_NUMBER },
	{ "sleep_after_ms",	SHOW_NUMBER },
	{ "keep_alive",		SHOW_YES },
	{ "labels",		SHOW_MAP },
};
/* clang-format on */

static void add_map(struct buf *out, const struct json *map)
{
	const char *name, *value;

	for (size_t i = 0; json_member(map, i, &name, &value); i++) {
		buf_addf(out, "%s%s=", i ? "," : "", name);
		plain_add(out, value);
	}
}

static void add_member(struct buf *out, const struct json *record, size_t i)
{
	const char *name = members[i].name;

	if (!json_get(record, name) ||
	    (members[i].kind == SHOW_TEXT && !json_get_str(record, name)[0]))
		return;
	buf_addf(out, "%-15s ", name);
	if (members[i].kind == SHOW_TEXT)
		plain_add(out, json_get_str(record, name));
	if (members[i].kind == SHOW_NUMBER)
		buf_addf(out, "%" PRId64, json_get_int(record, name));
	if (members[i].kind == SHOW_YES)
		buf_adds(out, json_get_bool(record, name) ? "yes" : "no");
	if (members[i].kind == SHOW_MAP)
		add_map(out, json_get(record, name));
	buf_adds(out, "\n");
}

static void add_receipt(struct buf *out, const struct json *receipt)
{
	const char *seen = json_get_str(receipt, "observed_at");

	if (!receipt)
		return;
	if (!seen[0]) /* a removed host's: not observed, but said */
		seen = json_get_str(receipt, "removed_at");
	buf_addf(out, "%-15s ", "receipt");
	sandbox_receipt_text(out, receipt);
	buf_addf(out, "\n%-15s %s\n%-15s %s\n", "seen_at", seen, "host",
		 json_get_str(receipt, "host"));
}

/* It stays when the sandbox is woken: that something was lost is worth knowing later, too. */
static void add_failure(struct buf *out, const struct json *failure)
{
	if (!json_get_str(failure, "at")[0])
		return;
	buf_addf(out, "%-15s %s: ", "last_failure", json_get_str(failure, "at"));
	plain_add(out, json_get_str(failure, "why"));
	buf_addf(out, "; lost %s, files %s\n", json_get_str(failure, "lost"),
		 json_get_bool(failure, "files_kept") ? "kept" : "not kept");
}

/* The open internet is a choice to be seen where a sandbox is looked at. */
static void add_network(struct buf *out, const struct json *network)
{
	if (network)
		buf_addf(out, "%-15s %s\n", "network", json_get_str(network, "mode"));
}

static void add_guest(struct buf *out, const struct json *guest)
{
	if (guest)
		buf_addf(out, "%-15s protocol %s, %s\n", "guest", json_get_str(guest, "protocol"),
			 json_get_str(guest, "status"));
}

static int run(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);

	(void)options;
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, args->items[0]);
	if (client_call(c, "GET", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	if (c->json)
		return client_print(&reply, e);
	for (size_t i = 0; i < array_len(members); i++)
		add_member(&out, reply.tree, i);
	add_failure(&out, json_get(reply.tree, "last_failure"));
	add_network(&out, json_get(reply.tree, "network"));
	add_guest(&out, json_get(reply.tree, "guest"));
	add_receipt(&out, json_get(reply.tree, "receipt"));
	return say_out(buf_str(&out), out.len, e);
}

const struct command cmd_show = {
	.name = "show",
	.usage = "SANDBOX",
	.help = "Show one sandbox, or the receipt of one that is gone",
	.min = 1,
	.max = 1,
	.run = run,
};

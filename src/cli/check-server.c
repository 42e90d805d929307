#include <stdio.h>
#include <string.h>

#include "cli/check.h"
#include "cli/client.h"
#include "cli/table.h"

#define LOOK_MS 5000

void check_server(const struct context *c, struct check *ret)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	cleanup(json_free) struct json *tree = NULL;
	char url[CLIENT_URL_MAX];
	struct fetch_request q = { .url = url, .body_fd = -1, .timeout_ms = LOOK_MS };
	struct err e;

	snprintf(url, sizeof(url), "%s/v1/health", c->url);
	if (fetch(&q, &reply, &e) < 0) {
		check_set(ret, CHECK_WARN,
			  "Start one: sudo berth dev --dir DIR, or sudo berth init.",
			  "none answers at %s", c->url);
		return;
	}
	if (json_parse(buf_str(&reply.body), reply.body.len, &tree, &e) < 0 ||
	    !json_get_str(tree, "status")[0]) {
		check_set(ret, CHECK_FAIL, "Set BERTH_URL to a Berth server.",
			  "what answers at %s is not Berth", c->url);
		return;
	}
	check_set(ret, reply.status == 200 ? CHECK_OK : CHECK_FAIL,
		  reply.status == 200 ? NULL : "See the logs of berthd, berth-node and PostgreSQL.",
		  "%s %s at %s; database %s, node %s%s%s", json_get_str(tree, "status"),
		  json_get_str(tree, "version"), c->url, json_get_str(tree, "database"),
		  json_get_str(tree, "node"), reply.status == 200 ? "" : ": ",
		  json_get_str(tree, "reason"));
}

void check_key(const struct context *c, struct check *ret)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	struct fetch_request q = { .body_fd = -1, .timeout_ms = LOOK_MS };
	struct err e;

	if (!c->key[0])
		check_set(ret, CHECK_WARN, "Set BERTH_API_KEY; under `berth dev`: `. DIR/env`.",
			  "none is set");
	else if (client_fetch(c, "/v1/host", &q, &reply, &e) == 0)
		check_set(ret, CHECK_OK, NULL, "works; %lld sandboxes on %s",
			  (long long)json_get_int(reply.tree, "sandboxes"),
			  json_get_str(reply.tree, "host"));
	else if (reply.status == 401)
		check_set(ret, CHECK_FAIL,
			  "Use a key of this server: DIR/key, or `berth key create`.",
			  "the server does not know it");
	else
		check_set(ret, CHECK_WARN, NULL, "cannot be tried: %.150s", e.msg);
}

void check_pool(const struct context *c, struct check *ret)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	struct fetch_request q = { .body_fd = -1, .timeout_ms = LOOK_MS };
	char left[TABLE_SIZE_TEXT], all[TABLE_SIZE_TEXT], keep[TABLE_SIZE_TEXT];
	uint64_t available, kept;
	struct err e;

	if (!c->key[0] || client_fetch(c, "/v1/host", &q, &reply, &e) < 0) {
		check_set(ret, CHECK_WARN, NULL, "cannot be asked without a server and a key");
		return;
	}
	available = (uint64_t)json_get_int(reply.tree, "disk_available");
	kept = (uint64_t)json_get_int(reply.tree, "disk_keep");
	table_size_text(available, left);
	table_size_text((uint64_t)json_get_int(reply.tree, "disk_total"), all);
	table_size_text(kept, keep);
	if (available < kept)
		check_set(ret, CHECK_FAIL,
			  "Remove images or sandboxes, or give the pool more disk.",
			  "%s of %s free, below the %s it keeps: no new sandboxes", left, all,
			  keep);
	else if (available < 2 * kept)
		check_set(ret, CHECK_WARN, "Remove images or sandboxes you do not need.",
			  "%s of %s free; below %s no new sandboxes are made", left, all, keep);
	else
		check_set(ret, CHECK_OK, NULL, "%s of %s free", left, all);
}

/* Whether every host of a cell of several can fence itself, and what is wrong with which. */
void check_hosts(const struct context *c, struct check *ret)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	struct fetch_request q = { .body_fd = -1, .timeout_ms = LOOK_MS };
	const struct json *list;
	const char *bare = "", *away = "";
	size_t count = 0;
	struct err e;

	if (!c->key[0] || client_fetch(c, "/v1/hosts", &q, &reply, &e) < 0) {
		check_set(ret, CHECK_WARN, NULL, "cannot be asked without a server and a key");
		return;
	}
	list = json_get(reply.tree, "hosts");
	for (size_t i = 0; i < json_len(list); i++) {
		const struct json *host = json_at(list, i);
		const char *state = json_get_str(host, "state");

		if (strcmp(state, "gone") == 0)
			continue;
		count++;
		if (!json_get_str(host, "lease_until")[0])
			bare = json_get_str(host, "id");
		if (strcmp(state, "frozen") == 0 || strcmp(state, "lost") == 0)
			away = json_get_str(host, "id");
	}
	if (count > 1 && bare[0])
		check_set(ret, CHECK_FAIL, "Set lease = on in its berthd.conf and restart berthd.",
			  "%zu, and %s has no lease: no other host can take it over", count, bare);
	else if (away[0])
		check_set(ret, CHECK_WARN, "'berth host ls' says more; see docs/cell.md.",
			  "%zu, and %s is away", count, away);
	else if (bare[0])
		check_set(ret, CHECK_OK, NULL, "one: it needs no lease, and has none");
	else
		check_set(ret, CHECK_OK, NULL, "%zu, each with a lease", count);
}

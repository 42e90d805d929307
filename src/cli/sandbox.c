#include "cli/sandbox.h"

#include <string.h>

#include "cli/allow.h"
#include "cli/follow.h"
#include "cli/say.h"
#include "lib/id.h"

#define BODY_MAX          (16UL * 1024)
#define CREATE_TIMEOUT_MS (5UL * 60 * 1000)
#define MEGABYTE          (1024UL * 1024)

static int check_pairs(const char *what, const struct strv *list, struct err *e)
{
	for (size_t i = 0; i < list->len; i++)
		if (!strchr(list->items[i], '='))
			return err_set(e, ERR_INVALID, "%s is NAME=VALUE, not \"%.60s\"", what,
				       list->items[i]);
	return 0;
}

/* A bare number is bytes: 512 was meant as megabytes, and is refused before anything is sent. */
static int check_size(const char *option, uint64_t bytes, struct err *e)
{
	if (bytes == 0 || bytes >= MEGABYTE)
		return 0;
	err_set(e, ERR_INVALID, "%s %llu is a number of bytes, less than 1m", option,
		(unsigned long long)bytes);
	return err_fix(e, "Give it a unit: %s %llum.", option, (unsigned long long)bytes);
}

static int create_body(struct buf *out, const char *image, const struct sandbox_options *o,
		       struct err *e)
{
	if (check_pairs("a label", &o->labels, e) < 0 ||
	    check_pairs("a variable", &o->env, e) < 0 ||
	    check_size("--memory", o->memory, e) < 0 || check_size("--disk", o->disk, e) < 0)
		return -1;
	buf_adds(out, "{");
	json_str(out, "image", image);
	if (o->runtime)
		json_str(out, "runtime", o->runtime);
	if (o->memory)
		json_int(out, "memory_mb", (int64_t)((o->memory - 1) / MEGABYTE + 1));
	if (o->cpu_milli)
		json_int(out, "cpu_milli", (int64_t)o->cpu_milli);
	if (o->pids)
		json_int(out, "pids", (int64_t)o->pids);
	if (o->disk)
		json_int(out, "disk_mb", (int64_t)((o->disk - 1) / MEGABYTE + 1));
	if (o->lifetime_ms || o->lasts)
		json_int(out, "lifetime_ms", (int64_t)o->lifetime_ms);
	if (o->profile)
		json_str(out, "profile", o->profile);
	if (o->name)
		json_str(out, "name", o->name);
	if (o->labels.len) {
		json_key(out, "labels");
		json_map(out, &o->labels);
	}
	if (o->env.len) {
		json_key(out, "env");
		json_map(out, &o->env);
	}
	if (o->allow.len || o->network) {
		json_key(out, "network");
		if (allow_policy(out, o->network, &o->allow, 0, e) < 0)
			return -1;
	}
	buf_adds(out, "}");
	return 0;
}

static bool on_tick(void *arg, uint64_t sent)
{
	struct interrupt *stop = arg;

	(void)sent;
	(void)interrupt_take(stop);
	return stop->count > 1;
}

/* Was it asked and nothing is known of it? A server that refused has said so. */
static bool is_unanswered(const struct client_reply *reply, const struct err *why)
{
	return (reply->status == 0 && why->code == ERR_INTERNAL) || why->code == ERR_BUSY;
}

int sandbox_create(const struct context *c, const char *image, const struct sandbox_options *o,
		   struct interrupt *stop, struct client_reply *ret, struct err *e)
{
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);
	struct fetch_request q = { .method = "POST", .body_fd = -1, .tick = on_tick, .arg = stop };
	char key[ID_RANDOM_CHARS + 1];

	if (create_body(&body, image, o, e) < 0)
		return -1;
	id_random(key, ID_RANDOM_CHARS);
	q.idempotency_key = key;
	q.content_type = "application/json";
	q.body = buf_str(&body);
	q.body_len = body.len;
	q.timeout_ms = CREATE_TIMEOUT_MS;
	for (int again = 0;; again++) {
		bool broke;

		if (client_fetch(c, "/v1/sandboxes", &q, ret, e) == 0)
			break;
		broke = ret->status == 0 && e->code == ERR_INTERNAL;
		if (e->code == ERR_TIMEOUT) /* it may be there all the same */
			err_fix(e, "A sandbox may have been left: `berth ps` shows it.");
		if (stop->count || again == FOLLOW_AGAIN_MAX ||
		    (again == 0 ? !broke : !is_unanswered(ret, e)))
			return -1;
		client_reply_done(ret);
		*ret = (struct client_reply){ 0 };
		follow_pause();
	}
	if (!json_get_str(ret->tree, "id")[0])
		return err_set(e, ERR_INTERNAL, "the server gave the sandbox no usable id");
	return 0;
}

int sandbox_delete_surely(const struct context *c, const char *id, struct err *e)
{
	for (int again = 0;; again++) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };

		if (sandbox_delete(c, id, &reply, e) == 0)
			return 0;
		if (again == FOLLOW_AGAIN_MAX || !is_unanswered(&reply, e))
			return -1;
		follow_pause();
	}
}

void sandbox_receipt_text(struct buf *out, const struct json *receipt)
{
	static const char *const parts[] = { "process", "cgroup", "disk", "runtime", "link" };
	const char *comma = "";

	for (size_t i = 0; i < array_len(parts); i++) {
		const char *seen = json_get_str(receipt, parts[i]);

		if (!seen[0])
			continue;
		buf_addf(out, "%s%s %s", comma, parts[i], seen);
		comma = ", ";
	}
}

int sandbox_delete(const struct context *c, const char *id, struct client_reply *receipt,
		   struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	/* One that was deleted before has a receipt; 404 is for an id the server does not know. */
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, id);
	if (client_call(c, "DELETE", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	if (reply.status == 202)
		say("%s is being deleted; it is not proven gone yet%s%s", id,
		    json_get_str(reply.tree, "reason")[0] ? ": " : "",
		    json_get_str(reply.tree, "reason"));
	if (receipt) {
		*receipt = reply;
		reply = (struct client_reply){ 0 };
	}
	return 0;
}

#include "cli/sandbox.h"

#include <string.h>

#include "cli/allow.h"
#include "cli/say.h"
#include "lib/str.h"

#define BODY_MAX          (16UL * 1024)
#define CREATE_TIMEOUT_MS (5UL * 60 * 1000)
#define MEGABYTE          (1024UL * 1024)

static int create_body(struct buf *out, const char *image, const struct sandbox_options *o,
		       struct err *e)
{
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
	if (o->profile)
		json_str(out, "profile", o->profile);
	if (o->name)
		json_str(out, "name", o->name);
	if (o->labels.len) {
		json_key(out, "labels");
		json_map(out, &o->labels);
	}
	if (o->allow.len) {
		json_key(out, "network");
		if (allow_policy(out, &o->allow, 0, e) < 0)
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

int sandbox_create(const struct context *c, const char *image, const struct sandbox_options *o,
		   struct interrupt *stop, char id[SANDBOX_ID_SIZE], struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);
	struct fetch_request q = { .method = "POST", .body_fd = -1, .tick = on_tick, .arg = stop };

	if (create_body(&body, image, o, e) < 0)
		return -1;
	q.content_type = "application/json";
	q.body = buf_str(&body);
	q.body_len = body.len;
	q.timeout_ms = CREATE_TIMEOUT_MS;
	if (client_fetch(c, "/v1/sandboxes", &q, &reply, e) < 0) {
		if (e->code == ERR_TIMEOUT) /* it may be there all the same */
			err_fix(e, "A sandbox may have been left: `berth ps` shows it.");
		return -1;
	}
	if (reply.status == 200) { /* it must not be deleted afterwards, as what we made is */
		err_set(e, ERR_CONFLICT, "there is a sandbox %.60s already",
			o->name ? o->name : "");
		return err_fix(e, "Run it there: berth exec %.60s -- COMMAND...",
			       json_get_str(reply.tree, "id"));
	}
	if (!json_get_str(reply.tree, "id")[0] ||
	    !str_copy(id, SANDBOX_ID_SIZE, json_get_str(reply.tree, "id")))
		return err_set(e, ERR_INTERNAL, "the server gave the sandbox no usable id");
	return 0;
}

int sandbox_delete(const struct context *c, const char *id, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

	/* One that was deleted before has a receipt, not a 404: that is one nobody knows. */
	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, id);
	if (client_call(c, "DELETE", buf_str(&path), NULL, &reply, e) < 0)
		return -1;
	if (reply.status == 202)
		say("%s is being deleted; it is not proven gone yet%s%s", id,
		    json_get_str(reply.tree, "reason")[0] ? ": " : "",
		    json_get_str(reply.tree, "reason"));
	return 0;
}

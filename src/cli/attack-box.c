#include <stdio.h>
#include <string.h>

#include "cli/attack.h"
#include "cli/say.h"
#include "lib/str.h"

#define BODY_MAX  (64UL * 1024)
#define EXEC_MS   60000
#define MARGIN_MS 15000 /* then the server itself does not answer */
#define OUT_MAX   (1UL << 20)

void attack_answer_done(struct attack_answer *a)
{
	buf_done(&a->out);
}

bool attack_wants(const struct attack *a, const char *probe)
{
	if (a->only->len == 0)
		return true;
	for (size_t i = 0; i < a->only->len; i++)
		if (strcmp(a->only->items[i], probe) == 0)
			return true;
	return false;
}

int attack_create(struct attack *a, const char *image, const struct sandbox_options *o,
		  char id[SANDBOX_ID_SIZE], struct err *e)
{
	struct sandbox_options with = o ? *o : (struct sandbox_options){ 0 };
	cleanup(client_reply_done) struct client_reply made = { 0 };
	int n;

	with.runtime = a->runtime;
	(void)interrupt_take(a->stop);
	if (a->stop->count)
		return err_set(e, ERR_CONFLICT, "interrupted");
	strv_addf(&with.labels, ATTACK_LABEL "=%s", a->canary.id);
	n = sandbox_create(a->context, image, &with, a->stop, &made, e);
	strv_done(&with.labels);
	if (n == 0 && !str_copy(id, SANDBOX_ID_SIZE, json_get_str(made.tree, "id")))
		return err_set(e, ERR_INTERNAL, "the server gave the sandbox no usable id");
	return n;
}

void attack_delete(const struct attack *a, char id[SANDBOX_ID_SIZE])
{
	struct err e;

	if (id[0] && sandbox_delete(a->context, id, NULL, &e) < 0)
		say_error(&e, a->context->json);
	id[0] = '\0';
}

static void exec_body(struct buf *out, const char *cwd, const struct strv *words, bool background)
{
	buf_adds(out, "{");
	json_key(out, "argv");
	json_open(out, '[');
	json_add_string(out, ATTACK_PROBE);
	for (size_t i = 0; i < words->len; i++) {
		buf_adds(out, ",");
		json_add_string(out, words->items[i]);
	}
	buf_adds(out, "]");
	if (cwd)
		json_str(out, "cwd", cwd);
	json_int(out, "timeout_ms", EXEC_MS);
	if (background)
		json_bool(out, "background", true);
	buf_adds(out, "}");
}

static int call_exec(const struct attack *a, const char *id, const char *body,
		     struct client_reply *reply, struct err *e)
{
	char path[SANDBOX_ID_SIZE + 64];
	struct fetch_request q = {
		.method = "POST",
		.content_type = "application/json",
		.body = body,
		.body_len = strlen(body),
		.body_fd = -1,
		.timeout_ms = EXEC_MS + MARGIN_MS,
	};

	snprintf(path, sizeof(path), "/v1/sandboxes/%s/exec", id);
	return client_fetch(a->context, path, &q, reply, e);
}

int attack_exec(const struct attack *a, const char *id, const char *cwd, const struct strv *words,
		struct attack_answer *ret, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);

	exec_body(&body, cwd, words, false);
	if (call_exec(a, id, buf_str(&body), &reply, e) < 0)
		return -1;
	snprintf(ret->kind, sizeof(ret->kind), "%s", json_get_str(reply.tree, "kind"));
	ret->exit_code = json_get_int(reply.tree, "exit_code");
	ret->out = buf_make(OUT_MAX);
	buf_adds(&ret->out, json_get_str(reply.tree, "stdout"));
	return 0;
}

int attack_start(const struct attack *a, const char *id, const struct strv *words, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);

	exec_body(&body, NULL, words, true);
	return call_exec(a, id, buf_str(&body), &reply, e);
}

void attack_tar(struct buf *out, const struct attack_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct tar_entry x = { .type = entries[i].type, .mode = 0755 };

		snprintf(x.path, sizeof(x.path), "%s", entries[i].path);
		snprintf(x.target, sizeof(x.target), "%s",
			 entries[i].target ? entries[i].target : "");
		x.size = entries[i].len;
		tar_add_entry(out, &x);
		buf_add(out, entries[i].bytes, entries[i].len);
		tar_add_padding(out, entries[i].len);
	}
	tar_add_end(out);
}

int attack_import(const struct attack *a, const char *name, const struct buf *tar, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	char path[128];
	struct fetch_request q = {
		.method = "PUT",
		.content_type = "application/x-tar",
		.body = tar->data,
		.body_len = tar->len,
		.body_fd = -1,
	};

	snprintf(path, sizeof(path), "/v1/images/%s", name);
	return client_fetch(a->context, path, &q, &reply, e);
}

void attack_remove_image(const struct attack *a, const char *name)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	char path[128];
	struct err e;

	snprintf(path, sizeof(path), "/v1/images/%s", name);
	if (name[0] && client_call(a->context, "DELETE", path, NULL, &reply, &e) < 0)
		say_error(&e, a->context->json);
}

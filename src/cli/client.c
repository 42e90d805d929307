#include "cli/client.h"

#include <stdio.h>
#include <string.h>

#include "cli/say.h"
#include "lib/errno-map.h"
#include "lib/str.h"

#define CALL_TIMEOUT_MS (5UL * 60 * 1000)

void client_reply_done(struct client_reply *r)
{
	buf_done(&r->text);
	json_free(&r->tree);
}

int client_json_error(const struct json *object, struct err *e)
{
	const char *message = json_get_str(object, "message");
	const char *fix = json_get_str(object, "remediation");
	const char *request = json_get_str(object, "request_id");

	err_set(e, err_code_by_name(json_get_str(object, "code")), "%s",
		message[0] ? message : "the server failed without saying why");
	err_file_reason(e, json_get_str(object, "reason"));
	err_word_reason(e, json_get_str(object, "reason"));
	if (fix[0] && e->code == ERR_INTERNAL && request[0])
		err_fix(e, "%s (request %.40s)", fix, request);
	else if (fix[0])
		err_fix(e, "%s", fix);
	return -1;
}

/* What else could have answered, by status. */
static int plain_error(int status, struct err *e)
{
	err_set(e, status == 404 ? ERR_NOT_FOUND : ERR_INTERNAL, "the server answered %d", status);
	return err_fix(e, "Is BERTH_URL the address of a Berth server? `berth doctor` looks.");
}

int client_error(int status, const struct buf *body, struct err *e)
{
	cleanup(json_free) struct json *tree = NULL;
	struct err ignored;

	if (json_parse(buf_str(body), body->len, &tree, &ignored) < 0 ||
	    !json_get_str(tree, "message")[0])
		return plain_error(status, e);
	client_json_error(tree, e);
	if (status == 401)
		err_fix(e, "Set BERTH_API_KEY (or --key); under `berth dev`: `. DIR/env`.");
	return -1;
}

int client_fetch(const struct context *c, const char *path, struct fetch_request *q,
		 struct client_reply *ret, struct err *e)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	char url[CLIENT_URL_MAX];
	int n = snprintf(url, sizeof(url), "%s%s", c->url, path);

	if (n < 0 || (size_t)n >= sizeof(url))
		return err_set(e, ERR_INVALID, "the URL is too long: %.60s", url);
	q->url = url;
	q->key = c->key;
	if (fetch(q, &reply, e) < 0)
		return -1;
	ret->status = reply.status;
	if (reply.status < 200 || reply.status > 299)
		return client_error(reply.status, &reply.body, e);
	if (reply.streamed)
		return 0;
	if (json_parse(buf_str(&reply.body), reply.body.len, &ret->tree, e) < 0)
		return err_wrap(e, "the server's answer");
	ret->text = reply.body;
	reply.body = (struct buf){ 0 };
	return 0;
}

int client_call(const struct context *c, const char *method, const char *path, const char *body,
		struct client_reply *ret, struct err *e)
{
	struct fetch_request q = {
		.method = method,
		.body = body,
		.body_len = body ? strlen(body) : 0,
		.content_type = body ? "application/json" : NULL,
		.body_fd = -1,
		.timeout_ms = CALL_TIMEOUT_MS,
	};

	return client_fetch(c, path, &q, ret, e);
}

int client_remove_each(const struct context *c, const char *at, const struct strv *names,
		       struct err *e)
{
	for (size_t i = 0; i < names->len; i++) {
		cleanup(client_reply_done) struct client_reply reply = { 0 };
		cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);

		buf_adds(&path, at);
		fetch_escape(&path, names->items[i]);
		if (client_call(c, "DELETE", buf_str(&path), NULL, &reply, e) < 0)
			return err_wrap(e, "%s", names->items[i]);
	}
	return 0;
}

int client_print(const struct client_reply *reply, struct err *e)
{
	if (say_out(buf_str(&reply->text), reply->text.len, e) < 0)
		return -1;
	return say_out("\n", 1, e);
}

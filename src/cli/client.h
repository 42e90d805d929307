/* The server's API: a path and perhaps a body up, JSON or our kind of error back. */
#pragma once

#include "cli/command.h"
#include "lib/fetch.h"
#include "lib/json.h"

#define CLIENT_DEFAULT_URL "http://127.0.0.1:7070"
#define CLIENT_URL_MAX     4096

struct client_reply {
	int status;
	struct buf text;   /* the server's own JSON, for --json */
	struct json *tree; /* the same, to read from */
};
void client_reply_done(struct client_reply *r);

/*
 * 2xx is success; everything else becomes the error the server described. `ret` must be zeroed.
 * `body` is JSON or NULL.
 */
must_check int client_call(const struct context *c, const char *method, const char *path,
			   const char *body, struct client_reply *ret, struct err *e);

/* What the server said, as it is: for --json. */
must_check int client_print(const struct client_reply *reply, struct err *e);

/* DELETE of each of these below `at`, which ends in '/'. The first that fails ends it. */
must_check int client_remove_each(const struct context *c, const char *at,
				  const struct strv *names, struct err *e);

/* The same with a request of the caller's making; its url and key are filled in. */
must_check int client_fetch(const struct context *c, const char *path, struct fetch_request *q,
			    struct client_reply *ret, struct err *e);

/* Turn the body of a refusal into the error. Always -1. */
int client_error(int status, const struct buf *body, struct err *e);
int client_json_error(const struct json *object, struct err *e); /* from an SSE `error` event */

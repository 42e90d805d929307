/*
 * Which web pages may call the API from a browser: those of the origins that the
 * setting cors_origins names. A key is sent by the page itself, in a header: no
 * cookies, no "credentials", and no "*".
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

struct request;

#define CORS_ORIGIN_MAX 255 /* bytes of one */

/* "https://app.example.org http://localhost:3000": scheme, host and port, nothing behind them. */
must_check int cors_check(const char *origins, struct err *e);
bool cors_allows(const char *origins, const char *origin); /* one that a browser sent, or NULL */

/* The headers of the answer, whatever it will be. Nothing without the setting. */
void cors_begin(struct request *rq);

/* Whether it is a browser's question about another request, which cors_answer() answers. */
bool cors_asks(const struct request *rq);
void cors_answer(struct request *rq, const struct buf *methods); /* "GET, PUT" */

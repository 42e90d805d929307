/*
 * What a client was sent of the answer to its last request: nothing yet, a part, or all of it.
 * An answer of our own can stand only where one begins.
 */
#pragma once

#include "http/parse.h"

struct answer_watch {
	struct http_parser parser;
	bool owed;    /* a request went to the server, and its answer is not through */
	bool begun;   /* some of it went to the client */
	bool in_body; /* and its head is through */
	bool lost;    /* where one begins is not known any more */
};

void answer_watch_init(struct answer_watch *a);
void answer_watch_done(struct answer_watch *a);

/* A request goes to the server. */
void answer_watch_asked(struct answer_watch *a, bool head_only);

/* These bytes go to the client. */
void answer_watch_sent(struct answer_watch *a, const char *data, size_t len);

/* Would what is written now land inside an answer? */
bool answer_watch_is_inside(const struct answer_watch *a);

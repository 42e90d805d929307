/*
 * The requests of a connection: each is read whole, checked and counted before it
 * goes on, so that keep-alive and pipelines evade nothing. Where a secret goes to
 * this host, it is added here, and taken out of what comes back.
 */
#pragma once

#include "egress/conn.h"

struct http_filter *http_filter_new(struct conn *c);
void http_filter_free(struct http_filter *w); /* NULL is fine */

void http_filter_from_client(struct http_filter *w, const char *data, size_t len);
void http_filter_from_server(struct http_filter *w, const char *data, size_t len);
void http_filter_server_ended(struct http_filter *w);
/* The policy has its secrets, and allows the requests that may be under way. */
bool http_filter_may_stay(const struct http_filter *w);
/* the next request waits for this one's answer */
bool http_filter_is_busy(const struct http_filter *w);

/* These bytes go to the client; what was sent so far ends inside an answer. */
void http_filter_sent(struct http_filter *w, const char *data, size_t len);
bool http_filter_is_inside_answer(const struct http_filter *w);

/* An answer of our own, before the connection ends. */
void http_filter_say_refused(struct conn *c, const char *kind, const char *name, const char *rule);
void http_filter_say_unreachable(struct conn *c, const char *why);

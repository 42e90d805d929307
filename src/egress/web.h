/*
 * The requests of a connection: each is read whole, checked and counted before it
 * goes on, so that keep-alive and pipelines evade nothing. Where a secret goes to
 * this host, it is added here, and taken out of what comes back.
 */
#pragma once

#include "egress/conn.h"

struct web *web_new(struct conn *c);
void web_free(struct web *w); /* NULL is fine */

void web_from_client(struct web *w, const char *data, size_t len);
void web_from_server(struct web *w, const char *data, size_t len);
void web_server_ended(struct web *w);
bool web_is_current(const struct web *w); /* its secrets are those of the policy */
bool web_is_busy(const struct web *w);    /* the next request waits for this one's answer */

/* An answer of our own, before the connection ends. */
void web_say_refused(struct conn *c, const char *kind, const char *name, const char *rule);
void web_say_unreachable(struct conn *c, const char *why);

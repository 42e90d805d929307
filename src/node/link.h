/*
 * Links: connections on the one socket, and the calls that came over them.
 * A call outlives its link: what was begun is finished, only the answer is
 * then dropped.
 */
#pragma once

#include <uv.h>

#include "lib/packet.h"
#include "proto/node.h"

#define LINK_QUEUE_MAX (4 * 1024 * 1024) /* bytes waiting for a peer that does not read */
#define LINK_CALLS_MAX 4096

struct node;

struct link {
	struct node *node;
	int fd;
	uv_poll_t poll; /* data is the link */
	struct packets out;
	struct call *calls;
	size_t call_count;
	struct link *next;
};

struct call {
	struct node *node;
	struct link *link; /* NULL: the peer is gone */
	enum node_verb verb;
	uint64_t id;
	union node_any ask;
	int fd; /* that came with it, or -1 */
	struct call *next;
	struct call *next_waiter; /* of an image job, or the next follower */
};

must_check int link_listen(struct node *n, struct err *e);
void link_close_all(struct node *n);

/* Each of these but call_part() ends the call. */
void call_part(struct call *c, const void *record);
void call_reply(struct call *c, const void *record, int fd); /* fd: passed on, or -1; not taken */
void call_fail(struct call *c, const struct err *why);

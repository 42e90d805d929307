/*
 * A reactor's link to berth-node: calls go out with an id, answers come back in
 * any order. A link that breaks is made again; what was under way then fails
 * with ERR_BUSY and is *unknown*: it may have been done. So is a call that is
 * not answered by its verb's deadline, with the reason NODE_UNANSWERED; each
 * part of a list sets the deadline anew, and a call that follows has none once
 * its list is through.
 */
#pragma once

#include <uv.h>

#include "lib/packet.h"
#include "proto/node.h"

#define NODE_LINK_BUCKETS 1024
#define NODE_UNANSWERED   "node_unanswered"

struct node_call;
struct node_link;

/* `record` is the reply (or part) the verb's row names. Descriptors are the callee's to take. */
struct node_call_events {
	void (*on_part)(void *data, const union node_any *record); /* may be NULL */
	void (*on_done)(void *data, const union node_any *record, int *fd, const struct err *why);
};

struct node_link {
	uv_loop_t *loop;
	const char *path;
	int fd; /* -1: not connected */
	uv_poll_t *poll;
	uv_timer_t retry;
	struct packets out;
	struct node_call *calls[NODE_LINK_BUCKETS];
	uint64_t next_id;
	bool up;
	const uint32_t *deadlines; /* of each verb, in ms; NULL: the usual ones */

	void (*on_up)(struct node_link *link, void *data); /* after each connect; may be NULL */
	void *data;
};

void node_link_open(struct node_link *link, uv_loop_t *loop, const char *path);
void node_link_close(struct node_link *link); /* fails what is under way */

/*
 * on_done() is called exactly once, from the loop and never from within this.
 * `fd` is passed along (duplicated), -1 for none.
 */
void node_call(struct node_link *link, enum node_verb verb, const void *record, int fd,
	       const struct node_call_events *events, void *data);

bool node_unanswered(const struct err *why); /* it may still be at it */

/*
 * What berth-egress was asked and has not answered. A question is answered once: by
 * berth-egress, or with "not known" when it is late or away.
 *
 * On the first reactor, as the link is; an answer comes on the reactor that asked.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "core/sandbox.h"
#include "proto/egress.h"

/* What a sandbox had used by then. Counts of another `since_ns` are not of the same counter. */
struct egress_count {
	uint64_t since_ns; /* 0: not known */
	uint64_t requests;
};

typedef void egress_count_fn(void *data, const struct egress_count *count);

struct question {
	struct job job; /* to the first reactor, and back to `from` */
	struct policy_sync *sync;
	struct reactor *from;
	egress_count_fn *done;
	void *data;
	struct egress_ask ask;
	struct egress_count count;
	uint64_t deadline_ms;
	struct question *next;
};

struct questions {
	struct question *first;
	uint64_t number; /* the last one's */
	bool silent;     /* one was late, and nothing was answered since: more would only wait */
};

/* Taken over; `packet` is what is to be sent. */
void questions_add(struct questions *q, struct question *one, uint64_t now_ms, struct buf *packet);

void questions_take(struct questions *q, const struct egress_answer *answer);
void questions_expire(struct questions *q, uint64_t now_ms);
void questions_end(struct questions *q); /* the link is lost */

void question_back(struct question *one); /* with what stands in `count` */

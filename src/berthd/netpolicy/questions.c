#include "berthd/netpolicy/questions.h"

#include <stdlib.h>

#define ANSWER_MS 200

static void on_back(struct job *job)
{
	struct question *one = container_of(job, struct question, job);

	one->done(one->data, &one->count);
	free(one);
}

void question_back(struct question *one)
{
	one->job = (struct job){ .reactor = one->from, .done = on_back };
	reactor_post(one->from, &one->job);
}

void questions_add(struct questions *q, struct question *one, uint64_t now_ms, struct buf *packet)
{
	one->ask.number = ++q->number;
	one->deadline_ms = now_ms + ANSWER_MS;
	one->next = q->first;
	q->first = one;
	egress_encode(packet, EGRESS_ASK, &one->ask);
}

void questions_take(struct questions *q, const struct egress_answer *answer)
{
	struct question **at = &q->first, *one;

	q->silent = false;
	while ((one = *at) && one->ask.number != answer->number)
		at = &one->next;
	if (!one)
		return; /* it was late */
	*at = one->next;
	one->count = (struct egress_count){ answer->since_ns, answer->requests };
	question_back(one);
}

void questions_expire(struct questions *q, uint64_t now_ms)
{
	struct question *one;

	for (struct question **at = &q->first; (one = *at);) {
		if (one->deadline_ms > now_ms) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		q->silent = true;
		question_back(one);
	}
}

void questions_end(struct questions *q)
{
	struct question *one;

	q->silent = false;
	while ((one = q->first)) {
		q->first = one->next;
		question_back(one);
	}
}

/* Where a command's output goes. Each takes over what is in `b`, and `input` in it. */
#pragma once

#include "berthd/exec/exec.h"
#include "berthd/exec/input.h"
#include "berthd/front/request.h"

struct exec_ask {
	struct exec_begin begin;
	struct exec_input input; /* the whole standard input, or none */
};

void exec_json(struct request *rq, struct exec_ask *ask);   /* one answer */
void exec_events(struct request *rq, struct exec_ask *ask); /* a stream */
void exec_later(struct request *rq, struct exec_ask *ask);  /* an answer when it runs */
void exec_tunnel(struct request *rq);                       /* frames, both ways */

/* What was said from a position on, as a stream: GET .../output. */
struct exec_replay {
	struct journal *journal; /* the caller's */
	uint64_t from;
	int only;    /* 0: both streams, or the FRAME_ type of the one wanted */
	bool follow; /* until it ends; otherwise until it says nothing more now */
};

void exec_replay_events(struct request *rq, const struct exec_replay *r);
void exec_replay_json(struct request *rq, const struct exec_replay *r);

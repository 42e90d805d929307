/* The execs of a sandbox, read from their journals: also after the sandbox is gone. */
#pragma once

#include "berthd/exec/exec.h"
#include "berthd/front/request.h"
#include "berthd/journal/journal.h"

/* GET and DELETE /v1/sandboxes/{}/execs/{} and GET /v1/sandboxes/{}/execs, on a worker */
int execs_list(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int execs_get(struct request *rq, struct store *s, struct buf *reply, struct err *e);
int execs_forget_one(struct request *rq, struct store *s, struct buf *reply, struct err *e);

void execs_forget(struct request *rq);     /* DELETE .../execs: in pieces, each a job */
void execs_output(struct request *rq);     /* GET .../execs/{}/output */
void execs_kill(struct request *rq);       /* POST .../execs/{}/kill */
void execs_kill_scope(struct request *rq); /* POST .../execs/kill */
void execs_stdin(struct request *rq);      /* POST .../execs/{}/stdin */
void execs_wait(struct request *rq);       /* GET .../execs/{}/wait */

/* What a request may see of rq->sub in rq->param. The result is held. */
must_check int execs_find(const struct request *rq, struct journal **ret, struct err *e);

void exec_record_json(struct buf *out, struct journal *j);    /* the exec as an object */
void exec_record_members(struct buf *out, struct journal *j); /* what is between its braces */

void exec_route(struct request *rq); /* POST /v1/sandboxes/{}/exec */

/* An id that a request chose: those of wrappers say what runs under a lease, and are an admin's. */
must_check int exec_id_allow(const struct request *rq, const char *id, struct err *e);

/* What to run is given in one way, of two: as an argv, or as a command for a shell. */
must_check int exec_words_check(bool argv, bool command, struct err *e);

/* exec_begin() on behalf of a request. */
void exec_begin_for(struct request *rq, struct exec_begin *b, struct tail *t);

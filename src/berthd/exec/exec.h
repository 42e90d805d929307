/*
 * One command in a sandbox: its journal, the connection to its init, and the truth
 * about how it ended. Readers follow the journal (tail.h); the client on whose
 * behalf it was begun is handed what comes in without the detour.
 *
 * An exec belongs to no client. berthd may be restarted at any time: it finds the
 * journals without a terminal record and goes on where they end.
 *
 * PostgreSQL is not on this path.
 */
#pragma once

#include "berthd/exec/exec-phase.h"
#include "berthd/exec/init-stream.h"
#include "berthd/exec/mailbox.h"
#include "berthd/journal/tail.h"
#include "berthd/netpolicy/questions.h"
#include "berthd/runtime/caller.h"
#include "proto/node.h"

#define EXEC_COUNT_MS 100 /* for berth-egress to say how many requests were made so far */

/* Was berth-node asked whether the kernel killed it? */
enum oom_look {
	OOM_UNASKED,
	OOM_ASKED,
	OOM_ANSWERED
};

struct exec {
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	struct tail *client;      /* on whose behalf it runs; NULL: no client's, or it left */
	struct journal_head head; /* until there is a journal */
	struct journal *journal;
	char sandbox[SANDBOX_ID_SIZE];
	uint64_t generation;
	bool keep; /* goes on when the client is gone */

	uint8_t phase;              /* enum exec_phase */
	struct init_stream *stream; /* NULL: not reached */
	bool unanswered;            /* init was asked for it there, and has not said yes */
	bool paused;
	bool busy;                            /* its sandbox is, because of this */
	bool gone;                            /* no process is left to ask */
	bool absent;                          /* and nothing left of what it started */
	bool unwanted;                        /* it is not to be started at all any more */
	struct mail *signals, **signals_last; /* init has not said yet that it did them */
	size_t signals_sent;                  /* so many of them it has heard of */
	bool input_ended;                     /* init was told so */
	uint64_t stdin_out;                   /* bytes init has not passed on yet */
	struct mail *mail;                    /* that waits until init takes it */
	size_t mail_count;
	uint64_t acked;
	uint64_t retry_ms;
	struct err *refusal; /* why it never began; its client hears that when the handles close */
	uv_timer_t deadline; /* to be started, then to end: past it, it is lost */
	uv_timer_t retry;
	uv_timer_t watch; /* over its CPU time */
	int pending;      /* handles and calls that will still come back to us */
	struct exec_exit exit;
	bool unwritten; /* its end could not be recorded at first */
	struct exec_usage use;
	uint64_t disk_at_ms;  /* of the usage asked for last: see pool_level_synced_at() */
	struct limits limits; /* as they were last */
	uint64_t oom_told;    /* see sandbox_cache_oom(); as it began */
	enum oom_look oom;    /* see oom.h */
	bool let_go;          /* init was told so, on this stream */
	enum presence memory; /* did the kernel, for memory? */
	bool alone;           /* nothing ran beside it, so far, */
	uint64_t begun;       /* when this was how many had begun */
	struct egress_count requests_before, requests_after;
	uint64_t counted; /* of the sandbox's generation */
	bool counting;    /* berth-egress was asked for one of them, and it is awaited */
	bool measured;    /* berth-node has said what it used, or will not */
	int way_fd;       /* to its init, while it waits to be run; -1: it does not */
	struct exec_request waiting;
};

static inline void exec_move(struct exec *x, enum exec_phase to)
{
	(void)!phase_move(&exec_phases, &x->phase, to); /* no step could be undone */
}

/* The command, as far as we know. */
static inline bool exec_is_over(const struct exec *x)
{
	return x->phase >= EXEC_MEASURING;
}

struct exec_begin {
	const char *sandbox;
	struct exec_request ask; /* taken over; without an id it gets one */
	bool keep, background;
	char group[EXEC_ID_SIZE];
	char key[JOURNAL_KEY_SIZE], body[JOURNAL_KEY_SIZE]; /* of an Idempotency-Key; or empty */
};

/*
 * `t` hears of it from now on, never from within. With an Idempotency-Key that was used, it
 * hears of the exec of that time.
 */
void exec_begin(const struct caller *by, struct exec_begin *b, struct tail *t);

/* Go on with what another berthd began. */
void exec_go_on(struct reactor *r, struct journal *j);

/* The client is gone. A command without `keep` is killed, and its journal completed. */
void exec_abandon(struct tail *t);

/* All of these on the exec's own loop. */
void exec_refuse(struct exec *x, const struct err *why); /* it never began: nothing is kept */
void exec_send(struct exec *x, enum frame_type type, const void *data, size_t len);
size_t exec_send_backlog(const struct exec *x);
void exec_signal(struct exec *x, uint32_t signum); /* of its own: no caller waits */
void exec_caught_up(struct exec *x);               /* its client did */

/* A call to berth-node that counts as pending; exec_came_back() first thing in its callback. */
void exec_ask_usage(struct exec *x, const struct node_call_events *events);
/* The same of berth-egress, if it can be asked: false, and `done` does not come. */
bool exec_ask_requests(struct exec *x, egress_count_fn *done);
must_check bool exec_came_back(struct exec *x); /* true: the exec waits for it no more */

/* The members of the record that all answers share. */
void exec_exit_json(struct buf *out, struct journal *j, const struct exec_exit *exit);

/* Between its own files. It has its journal, which is taken over; then: have init run it. */
struct exec *exec_new(struct reactor *r);
void exec_close(struct exec *x);
void exec_bind(struct exec *x, struct journal *j);
void exec_run(struct exec *x, int fd, const struct exec_request *ask); /* takes `fd` over */

/*
 * One run of code in a context: from the request to its end.
 *
 * The context's record is found or made, the run is handed to the sandbox's
 * init, and what comes back goes to a sink: one JSON answer or an event stream.
 * Whether the code failed is the runner's word, and so are results; whether
 * the interpreter lives, was killed or is lost is init's and the host's.
 */
#pragma once

#include <uv.h>

#include "berthd/exec/code-phase.h"
#include "berthd/exec/result-message.h"
#include "berthd/runtime/caller.h"
#include "berthd/runtime/reactor.h"
#include "proto/context.h"
#include "proto/frame.h"
#include "proto/node.h"
#include "store/context.h"

#define CODE_TIMEOUT_DEFAULT_MS 60000
#define CODE_TIMEOUT_MAX_MS     86400000
#define CODE_RESULTS_MAX        256                /* of one run; more are counted, not kept */
#define CODE_RESULTS_BYTES_MAX  (32 * 1024 * 1024) /* of all of them */

enum code_kind {
	CODE_NONE,
	CODE_OK,
	CODE_ERROR,     /* an exception, or the interpreter was told to exit */
	CODE_TIMED_OUT, /* interrupted, and killed if it did not heed that */
	CODE_KILLED,    /* by a signal, for memory, or because it was deleted */
	CODE_LOST,      /* its end was not seen */
	CODE_KIND_COUNT
};
const char *code_kind_name(enum code_kind kind);

/* What is asked. */
struct code_ask {
	enum context_verb verb;          /* CONTEXT_END: of `context`, and nothing else counts */
	char context[CONTEXT_NAME_SIZE]; /* "": the language's default one */
	enum context_language language;  /* CONTEXT_UNSET: python, or what the context speaks */
	char *code;
	struct strv env;    /* for this run only */
	int64_t timeout_ms; /* -1: the context's */
};

struct code_run;
struct init_stream;

struct code_sink {
	void (*started)(struct code_run *r);

	/* Both: true means full, no more comes before code_resume(). */
	bool (*output)(struct code_run *r, enum frame_type stream, const uint8_t *data, size_t len);
	bool (*note)(struct code_run *r, enum note_type type, const struct buf *json);

	/* The end, exactly once; `why` if it could not be run. Then the run is freed. */
	void (*finished)(struct code_run *r, const struct err *why);
};

struct code_run {
	struct request *rq; /* the sink's: not looked into here */
	char request[NODE_REQUEST_SIZE];
	struct reactor *reactor;
	const struct code_sink *sink;
	void *data; /* the sink's */
	struct code_ask ask;
	struct context_record context;
	char sandbox[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE]; /* of the sandbox */
	uint64_t generation;
	uint64_t oom_kills, oom_told; /* as it began; see sandbox_cache_oom() */
	bool beside;                  /* it is counted among what runs in the sandbox */

	struct job job; /* for the database: one at a time */
	int fd;         /* to init, until the stream has it */
	struct init_stream *stream;
	uv_timer_t deadline;
	int pending;   /* handles and calls that will still come back to us */
	uint8_t phase; /* enum code_phase */
	bool timing;
	bool listed;    /* in the set of contexts that run */
	bool recording; /* the record of the run is on its way to the database */
	bool fresh;     /* run.fresh for that job: init may say more of the run meanwhile */

	struct buf line; /* a note not yet whole */
	bool skipping;   /* it is too long */
	struct note_budget notes;
	struct context_run run;
	struct exec_exit exit;
	enum code_kind kind;
	struct buf error; /* as JSON; empty: none */
	uint64_t offset[2];
	uint64_t results, results_bytes, results_dropped;
	bool restarted;
};

/*
 * `ask` is taken over. *held is the run until finished(), which may be called from
 * here already.
 */
struct code_begin {
	const struct caller *by;
	const char *sandbox;
	struct code_ask *ask;
	const struct code_sink *sink;
	void *data;                           /* the sink's */
	struct request *rq;                   /* the sink's, too */
	const struct context_record *context; /* of CONTEXT_END: the one that is to end */
	void **held;
};
void code_run_begin(const struct code_begin *b);
void code_resume(struct code_run *r);
void code_cancel(struct code_run *r); /* the client left: interrupt it, do not call finished() */
void code_ask_done(struct code_ask *ask);

/* The members all answers share, inside an object. */
void code_end_json(struct buf *out, const struct code_run *r);

/*
 * One command in a sandbox: the connection to its init, and the truth about how
 * it ended. What comes back goes to a sink: a JSON answer, an event stream, or
 * an upgraded connection.
 *
 * PostgreSQL is not on this path.
 */
#pragma once

#include "api/request.h"
#include "proto/exec.h"
#include "proto/frame.h"
#include "proto/node.h"

struct exec;

struct exec_sink {
	void (*started)(struct exec *x, uint32_t pid);

	/*
	 * Bytes of one stream. FRAME_HEAD bytes in front of `data` may be
	 * overwritten. True: full; no more comes before exec_resume().
	 */
	bool (*output)(struct exec *x, enum frame_type stream, uint8_t *data, size_t len);

	/* The end, exactly once: the record, or why there is none. Then the exec is freed. */
	void (*finished)(struct exec *x, const struct exec_exit *exit, const struct err *why);
};

struct exec {
	struct request *rq; /* until finished() or exec_cancel(); the sinks' */
	struct reactor *reactor;
	char request[NODE_REQUEST_SIZE];
	const struct exec_sink *sink;
	struct exec_request ask;
	char sandbox[64];
	uint64_t generation;

	uv_pipe_t pipe; /* to init */
	bool piped, reading, started, ended;
	bool busy;           /* its sandbox is, because of this */
	size_t sends;        /* frames on their way to init */
	uv_timer_t deadline; /* to be started, then to end: past it, it is lost */
	bool timing;
	int pending; /* handles and calls that will still come back to us */

	/* the frame that is coming in */
	uint8_t head[FRAME_HEAD];
	size_t head_have;
	uint32_t left;    /* of its payload */
	struct buf small; /* a payload that must be whole to be read */
	struct exec_exit exit;
	uint64_t offset[2]; /* bytes of stdout and stderr so far */
	void *data;         /* the sink's */
};

void exec_route(struct request *rq); /* POST /v1/sandboxes/{}/exec */

/*
 * `ask` is taken over. rq->data is the exec until finished(). That may be called
 * from here already: then NULL is returned.
 */
struct exec *exec_begin(struct request *rq, const char *sandbox, struct exec_request *ask,
			const struct exec_sink *sink, void *data);
void exec_send(struct exec *x, enum frame_type type, const void *data, size_t len);
size_t exec_send_backlog(const struct exec *x); /* in bytes of our memory */
void exec_resume(struct exec *x);
void exec_cancel(struct exec *x); /* nobody listens: kill the tree, do not call finished() */

/* The members of the record that all answers share. */
void exec_exit_json(struct buf *out, const struct exec *x, const struct exec_exit *exit);

/*
 * The holder of one context: its interpreter, the run that is under way, and
 * those that wait for it.
 *
 * A run that is too long, or whose peer has left, is interrupted
 * like at a terminal. One that does not heed it is killed with everything the
 * context ever started, and then the context is gone; so it is if the
 * interpreter ends by itself.
 */
#pragma once

#include "init/frame-conn.h"
#include "init/interpreter.h"
#include "init/pid1-broker.h"

#define CONTEXT_SERVER_WAITING_MAX 32
#define CONTEXT_SERVER_STREAMS     3 /* standard output, standard error, notes */

enum holder_phase {
	CONTEXT_SERVER_IDLE,
	CONTEXT_SERVER_RUNNING,
	CONTEXT_SERVER_DRAINING, /* the run is over; what it wrote is still on its way */
	CONTEXT_SERVER_SAID,     /* and so is the word of its end */
};

struct context_server_stream {
	int fd;
	enum frame_type type;
	size_t left; /* CONTEXT_SERVER_DRAINING: what belongs to the run */
};

struct context_server {
	struct interpreter interpreter;
	struct tree tree;
	struct broker
		*broker; /* where connections come from; closed: it has left, its name is free */
	int sigfd;
	bool childless;
	bool ended; /* the interpreter is gone: say so, and end */
	int waiting[CONTEXT_SERVER_WAITING_MAX];
	size_t waiting_len;

	/* The run. */
	enum holder_phase phase;
	struct frame_conn peer; /* its fd is -1 once it has left */
	struct context_server_stream streams[CONTEXT_SERVER_STREAMS];
	struct buf feed; /* for the interpreter's requests */
	bool fed, told;  /* some of the code came, all of it */
	struct context_run run;
	struct exec_exit exit;
	uint64_t started_us, deadline_us; /* 0: none */
	enum exec_kind stopped_as;        /* why it was interrupted or killed */
};

/* Takes the broker, at which it has the context's name; also if it fails. */
must_check int context_server_open(struct context_server *h, const struct context_request *q,
				   struct broker *broker,
				   struct err *e);
/* until the context is gone */
void context_server_run(struct context_server *h, int conn, uint64_t timeout_ms);
void context_server_close(struct context_server *h);

/*
 * Terminals: a command on a pty that belongs to no client. It is an exec with a
 * journal like any other (its id begins with tm_), which is the scrollback: any
 * number of viewers, each from any position and at its own pace, also after
 * berthd was restarted. A slow viewer reads the journal more slowly, and no other notices.
 */
#pragma once

#include "berthd/exec/exec.h"
#include "berthd/exec/kill.h"

#define TERMINAL_COLS 80
#define TERMINAL_ROWS 24

/* An exec request for the pty: without an argv it is the login shell that there is. */
struct terminal_begin {
	const char *sandbox;
	/* Taken over; its flags and the variable TERM are set here. */
	struct exec_request ask;
	char key[JOURNAL_KEY_SIZE], body[JOURNAL_KEY_SIZE]; /* of an Idempotency-Key; or empty */
};

/* How long one lives if nothing else is asked for. */
uint64_t terminal_timeout_ms(const struct reactor *r);

/* `t` hears of it as of any exec; with a key the id follows from it. Fails before anything is. */
must_check int terminal_begin(const struct caller *by, struct terminal_begin *b, struct tail *t,
			      struct err *e);

/* Of numbers that came from outside. */
must_check int terminal_size(int64_t cols, int64_t rows, struct exec_size *ret, struct err *e);

/* What a caller may see; the result is held. */
must_check int terminal_find(const struct caller *by, const char *sandbox, const char *id,
			     struct journal **ret, struct err *e);

/* `done` is called once, never from within; the journal is held by the caller until then. */
void terminal_resize(struct reactor *r, struct journal *j, const struct exec_size *size,
		     kill_done_fn done, void *data);
void terminal_end(struct reactor *r, struct journal *j, kill_done_fn done, void *data);

/* ---- viewers ---- */

struct terminal_view;

struct terminal_sink {
	bool (*output)(void *data, const uint8_t *bytes, size_t len); /* true: full */
	void (*gap)(void *data, uint64_t position, uint64_t bytes);   /* not recorded */
	/* The command has read what it was given. */
	void (*room)(void *data);

	/* The last call of all: how it ended, or why that is not known. */
	void (*finished)(void *data, const struct exec_exit *exit, const struct err *why);
};

/* From this position on: not behind the end of what was said, and only so many at a time. */
must_check int terminal_view(struct reactor *r, struct journal *j, uint64_t from,
			     struct terminal_view **ret, struct err *e);

/* From now on the sink is called, never from within. */
void terminal_view_follow(struct terminal_view *v, const struct terminal_sink *sink, void *data);
void terminal_view_resume(struct terminal_view *v); /* after output() said full */

/* For the command, FRAME_PAYLOAD_MAX at most. True: it does not read; no more before room(). */
bool terminal_view_input(struct terminal_view *v, struct bytes keys);
bool terminal_view_resize(struct terminal_view *v, const struct exec_size *size);
bool terminal_view_is_waiting(const struct terminal_view *v); /* for the command to read */

/* Nothing is called after this. What the command has not read by then, it is not given. */
void terminal_view_close(struct terminal_view *v);

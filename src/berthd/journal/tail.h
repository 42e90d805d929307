/*
 * A reader of a journal: it begins at a position, and goes on as the journal grows.
 * Any number of them, on any loop, each at its own pace: they read the file.
 *
 * The one on whose behalf the command was begun is handed what comes in directly
 * as long as it keeps up; see exec.c.
 *
 * Callbacks come from the loop, never from within these functions.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/reactor.h"
#include "proto/frame.h"

struct tail;

/* All but `finished` may be NULL. */
struct tail_events {
	/* It runs, or ran. */
	void (*started)(struct tail *t, uint32_t pid);

	/*
	 * Bytes of one stream; t->offset[] is where in it they begin, t->position where
	 * among all. FRAME_HEAD bytes in front of `data` may be overwritten. True: full;
	 * no more comes before tail_resume().
	 */
	bool (*output)(struct tail *t, enum frame_type stream, uint8_t *data, size_t len);

	/* So many bytes were not recorded. */
	void (*gap)(struct tail *t, uint64_t bytes);

	/* That is all there is so far. */
	void (*idle)(struct tail *t);

	/* The end, exactly once: the record, or why there is none. It must close the tail. */
	void (*finished)(struct tail *t, const struct exec_exit *exit, const struct err *why);

	/* So many more bytes of its standard input are out of our hands. */
	void (*taken)(struct tail *t, uint32_t bytes);

	/* For the caller it was begun for: the command reads, there may be room for more input. */
	void (*drained)(struct tail *t);
};

struct tail {
	struct reactor *reactor;
	struct journal *journal; /* held; NULL until there is one */
	const struct tail_events *events;
	void *data;                          /* the owner's */
	struct exec *exec;                   /* begun on its behalf, alive */
	void (*caught_up)(struct exec *x);   /* told that it waits for what comes next */
	void (*others_read)(struct exec *x); /* see tail_watch_readers() */

	uint64_t from;      /* nothing before this position is passed on */
	uint64_t position;  /* the next byte */
	uint64_t offset[2]; /* of the next byte of each stream */
	uint64_t at;        /* in the file */
	uint32_t left;      /* of the frame it is in */
	int stream;         /* of that frame */
	size_t ahead;       /* so much is read at once */
	bool full, told, closed, listed, counted;
	bool blind; /* wants to know of the end and nothing else */
	bool quiet; /* there was nothing more, when so much had changed: */
	uint64_t seen;
	struct tail *next;
};

/* Nothing happens before tail_follow(). */
struct tail *tail_new(struct reactor *r, const struct tail_events *events, void *data);

/* Takes a hold of the journal. From UINT64_MAX on: only the end is told. */
void tail_follow(struct tail *t, struct journal *j, uint64_t from);
void tail_resume(struct tail *t);
void tail_close(struct tail *t); /* no more callbacks */

/*
 * For the exec that was begun on its behalf: it is handed what comes next as long
 * as it is right there, and otherwise catches up with the file.
 */
void tail_expect(struct tail *t, struct journal *j, struct exec *x,
		 void (*caught_up)(struct exec *x));
/* From now on the exec is told that other tails follow its journal, at every run while they do. */
void tail_watch_readers(struct tail *t, void (*others_read)(struct exec *x));
void tail_start(struct tail *t, uint32_t pid);
bool tail_is_at(const struct tail *t, uint64_t position);
void tail_hand(struct tail *t, int stream, uint8_t *data, size_t len, bool recorded);
void tail_leave(struct tail *t); /* the exec is over: the rest is in the file */

void tails_wake(struct journal *j); /* there is more, from any thread */
void tails_run(struct reactor *r);  /* on the reactor's own */

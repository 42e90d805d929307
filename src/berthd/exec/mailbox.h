/*
 * The mailbox of an exec: messages from any loop to a command that runs.
 *
 * A message is delivered on the exec's own loop, when init can take it, and answered on the loop
 * that sent it. It belongs to the mailbox from the call that sends it until its done() has
 * returned: the mailbox holds the journal and the bytes, and the sender has nothing to free.
 * done() is called exactly once, never from within.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/worker.h"

struct exec;

/*
 * NULL: delivered, as the function below says. ERR_CONFLICT: the exec has ended, or has no such
 * input. ERR_BUSY: it runs, and nothing of the message was delivered: this berthd has not reached
 * it since its start, or too much waits for it.
 */
typedef void (*mail_fn)(void *data, const struct err *why);

/* To all processes of the exec. Delivered: init has said so, or the exec has ended. */
void mail_signal(struct reactor *from, struct journal *j, uint32_t signum, mail_fn done,
		 void *data);

/*
 * Standard input, and with `last` its end: taken whole or not at all, at once. The buffer is
 * taken over. Delivered: on its way to init.
 */
void mail_input(struct reactor *from, struct journal *j, struct buf *bytes, bool last,
		mail_fn done, void *data);

/*
 * Of a terminal: what was typed (copied, FRAME_PAYLOAD_MAX at most), and its size. Delivered: on
 * its way to init. Keys wait until the command has read most of what came before.
 */
void mail_keys(struct reactor *from, struct journal *j, struct bytes keys, mail_fn done,
	       void *data);
void mail_size(struct reactor *from, struct journal *j, const struct exec_size *size,
	       mail_fn done, void *data);

/* The messages with this `data` that still wait are dropped; done() follows for each. */
void mail_drop(struct reactor *from, struct journal *j, void *data);

/* ---- for the exec, on its own loop ---- */

enum mail_kind {
	MAIL_SIGNAL,
	MAIL_INPUT,
	MAIL_KEYS,
	MAIL_SIZE,
	MAIL_DROP,
	MAIL_KIND_COUNT
};

struct mail {
	struct job job;
	enum mail_kind kind;
	struct reactor *from;
	struct journal *journal; /* NULL: of the exec itself */
	uint32_t signum;
	struct buf bytes;
	bool last;
	mail_fn done; /* NULL: of the exec itself, which does not wait */
	void *data;
	bool failed;
	struct err e;
	struct mail *next; /* in a queue of the exec */
};

struct mail *mail_new(enum mail_kind kind);

/* It was delivered (NULL), or never will be. The message is the mailbox's again. */
void mail_answer(struct mail *m, const struct err *why);

/* Init may take more, or the exec is over: what waits is looked at again. */
void mailbox_look(struct exec *x);

/*
 * From the process that took a connection to the one that holds the context it
 * is for. They meet at a name in the sandbox's own network namespace; whoever
 * can bind it is the holder, and its end frees the name.
 *
 * Who asks stays until it is told what became of its connection. A holder that
 * ends first has not taken it: then it is tried again, with a new holder.
 */
#pragma once

#include "proto/context.h"

struct handover {
	enum context_verb verb;
	uint64_t timeout_ms;
};

enum handover_word {
	HANDOVER_NONE,    /* the holder is gone: nobody has taken it */
	HANDOVER_TAKEN,   /* the connection is the holder's */
	HANDOVER_DELETED, /* the context was ended meanwhile */
	HANDOVER_BUSY,    /* too many wait for it */
	HANDOVER_LEFT,    /* the peer closed its connection */
};

/* A listening socket; -1 with EADDRINUSE: there is a holder. */
must_check int handover_listen(const char *id);
must_check int handover_connect(const char *id); /* -1: there is none */

/* Give the connection `conn`, which stays ours too, and wait for the word. */
enum handover_word handover_give(int to, const struct handover *h, int conn);

/* The holder's side. -1: nothing sensible came. */
must_check int handover_receive(int from, struct handover *ret, int *conn);
void handover_answer(int to, enum handover_word word);

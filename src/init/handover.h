/*
 * From the process that took a connection to the one that holds the context it
 * is for. pid 1 brings them together, by the context's name: only processes of
 * its own have a way to it, so no other process of the guest can be the holder.
 *
 * The one that asks stays until it is told what became of its connection. A holder
 * that ends first has not taken it: then it is tried again, with a new holder.
 */
#pragma once

#include "init/pid1-broker.h"
#include "proto/context.h"

struct handover {
	enum context_verb verb;
	uint64_t timeout_ms;
};

enum handover_word {
	HANDOVER_NONE,    /* the holder is gone, and has not taken it */
	HANDOVER_TAKEN,   /* the connection is the holder's */
	HANDOVER_DELETED, /* the context was ended meanwhile */
	HANDOVER_BUSY,    /* too many wait for it */
	HANDOVER_LEFT,    /* the peer closed its connection */
};

/* What pid 1 knows it by: ":ID", which is no exec's and no shell's. */
must_check int handover_name(const char *id, char ret[EXEC_ID_SIZE], struct err *e);

/*
 * BROKER_YES: a connection to the holder in *to; BROKER_NO: there is none. The holder knows from
 * now on what it is for (attach.offset[0] of what pid 1 sends it): to end the context waits
 * for no more words.
 */
enum broker_word handover_reach(struct broker *broker, const char *name, enum context_verb verb,
				int *to);

/* Give the connection `conn`, which stays ours too, and wait for the word. */
enum handover_word handover_give(int to, const struct handover *h, int conn);

/* The holder's side. -1: nothing sensible came. */
must_check int handover_receive(int from, struct handover *ret, int *conn);
void handover_answer(int to, enum handover_word word);

/*
 * How an operation's process reaches another through pid 1, and is found by an
 * exec's id. Each has one end of a socket pair, pid 1 all the others. Only our
 * own processes speak here; packets have one fixed shape.
 *
 *   operation -> pid 1   TAKE id            I run this exec from now on
 *   operation -> pid 1   GIVE id, offsets   this connection is for the one that runs it
 *   operation -> pid 1   KILL_LEFT id       kill what it left running; without an id, what all
 *                                           execs that have ended left. Also with the id of none,
 *                                           it is YES only if what killed ones left is gone
 *   operation -> pid 1   TREE               a cgroup for what I start, instead of the one before
 *   operation -> pid 1   TREE_ADD value     this process is a member of it
 *   operation -> pid 1   TREE_SIGNAL value  to its members, and say how many there are
 *   operation -> pid 1   WIDE_SIGNAL value  to those of all that I ever had
 *   operation -> pid 1   LEAVE              I run nothing any more: the name is free
 *   operation -> pid 1   ENDED              my exec has ended; I stay for what it left. No answer
 *   operation -> pid 1   SUBREAPER | NO_SUBREAPER   as tree_lacks_subreaper() says. No answer
 *   pid 1 -> operation   YES | BESIDE | NO | TORN | BUSY | UNSEEN   the answer to each
 *   pid 1 -> operation   GIVE               a connection for you
 *   pid 1 -> operation   KILL_LEFT          kill it, then say how many there were: a u32
 *
 * A question has a number, and its answer the same one: what pid 1 sends on its own
 * account has none, and may come between the two.
 *
 * An id that was asked for in vain is spent: a TAKE of it that comes later is
 * answered NO. So "no process runs it" stays true once it was said.
 */
#pragma once

#include "lib/err.h"
#include "proto/exec.h"

enum broker_word {
	BROKER_NONE,
	BROKER_TAKE,
	BROKER_GIVE,
	BROKER_KILL_LEFT,
	BROKER_TREE,
	BROKER_TREE_ADD,
	BROKER_TREE_SIGNAL,
	BROKER_WIDE_SIGNAL,
	BROKER_LEAVE,
	BROKER_ENDED,
	BROKER_SUBREAPER,
	BROKER_NO_SUBREAPER,
	BROKER_YES,
	BROKER_BESIDE, /* yes; and what one left that has ended or was killed runs beside it */
	BROKER_NO,
	/* none runs it; but a process that ran some exec was killed, with its record */
	BROKER_TORN,
	BROKER_BUSY,   /* it is there, but takes no more connections now */
	BROKER_UNSEEN, /* its process was killed: what it left runs or not, there is no telling */
};

struct broker_packet {
	enum broker_word word;
	uint32_t number; /* of a question and its answer; 0: neither */
	uint32_t asked;  /* in the answer to KILL_LEFT: so many processes will say a number */
	uint32_t value;  /* a process or signal; in the answer to a signal, how many members */
	struct exec_attach attach;
};

#define BROKER_HELD_MAX 16

/* The end of an operation's process. */
struct broker {
	int fd;
	bool left;       /* nothing but answers comes any more */
	uint32_t number; /* of the last question */
	/* What pid 1 sent while an answer was awaited. */
	size_t held_len;
	struct {
		struct broker_packet packet;
		int fd;
	} held[BROKER_HELD_MAX];
};

must_check int broker_pair(int ret[2]);

/* Never waits. `fd` is passed along (-1: none), and stays the caller's. -1 with errno. */
must_check int broker_send(int broker, const struct broker_packet *p, int fd);

/* 1: a packet, its descriptor or -1 in *fd; 0: none now; -1: the other end is gone. */
must_check int broker_receive(int broker, struct broker_packet *ret, int *fd);

/* The same for an operation's process: what was held comes first. */
must_check int broker_take(struct broker *h, struct broker_packet *ret, int *fd);
bool broker_holds(const struct broker *h);  /* then there is no need to wait for more */
int broker_listens(const struct broker *h); /* the descriptor to wait for, -1 once it has left */

/*
 * The name is free: no more connections come. Those that were on their way before pid 1
 * said so are for late(), which takes them.
 */
void broker_leave(struct broker *h, void (*late)(void *data, int fd), void *data);

/*
 * Ask pid 1 and wait for its answer, which never takes long; p->asked and p->value are of it.
 * BROKER_NONE: it is gone.
 */
enum broker_word broker_ask(struct broker *h, struct broker_packet *p, int fd);

/* The same, again and again for some seconds while it is BUSY. */
enum broker_word broker_ask_on(struct broker *h, struct broker_packet *p, int fd);

/* Returns -1: what BROKER_UNSEEN means to the one that asked. */
int broker_unseen(struct err *e);

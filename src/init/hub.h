/*
 * How an operation's process reaches another through pid 1, and is found by an
 * exec's id. Each has one end of a socket pair, pid 1 all the others. Only our
 * own processes speak here; packets have one fixed shape.
 *
 *   operation -> pid 1   TAKE id            I run this exec from now on
 *   operation -> pid 1   GIVE id, offsets   this connection is for who runs it
 *   operation -> pid 1   LEAVE              I run nothing any more: the name is free
 *   operation -> pid 1   LEFT pid, start    I end, and this child of mine lives on; no answer
 *   pid 1 -> operation   YES | NO | TORN | BUSY  the answer to each
 *   pid 1 -> operation   GIVE               a connection for you
 *
 * An id that was asked for in vain is spent: whoever then comes to TAKE it is
 * told NO. So "nobody runs it" stays true once it was said.
 */
#pragma once

#include "lib/err.h"
#include "proto/exec.h"

enum hub_word {
	HUB_NONE,
	HUB_TAKE,
	HUB_GIVE,
	HUB_LEAVE,
	HUB_LEFT,
	HUB_YES,
	HUB_NO,
	HUB_TORN, /* nobody runs it; but who ran some exec was killed, and left who knows what */
	HUB_BUSY, /* it is there, but takes no more connections now */
};

struct hub_packet {
	enum hub_word word;
	struct exec_attach attach;
};

must_check int hub_pair(int ret[2]);

/* Never waits. `fd` is passed along (-1: none), and stays the caller's. -1 with errno. */
must_check int hub_send(int hub, const struct hub_packet *p, int fd);

/* 1: a packet, its descriptor or -1 in *fd; 0: none now; -1: the other end is gone. */
must_check int hub_receive(int hub, struct hub_packet *ret, int *fd);

enum hub_word hub_next(int hub); /* of the packet that would be received; HUB_NONE: none now */

/* Ask pid 1 and wait for its answer, which never takes long. HUB_NONE: it is gone. */
enum hub_word hub_ask(int hub, const struct hub_packet *p, int fd);

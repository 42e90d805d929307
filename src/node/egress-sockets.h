/* Gives berth-egress the router's sockets, as often as it comes for them (proto/router.h). */
#pragma once

#include <uv.h>

#include "lib/err.h"

struct node;
struct taker;

struct egress_sockets {
	int door; /* -1: closed */
	uv_poll_t poll;
	uid_t user;
	struct taker *takers; /* who has them, and listens for our end */
};

must_check int egress_sockets_open(struct node *n, struct err *e);
void egress_sockets_close(struct node *n);

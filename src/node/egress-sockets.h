/* Gives berth-egress the router's sockets, as often as it comes for them (proto/router.h). */
#pragma once

#include <uv.h>

#include "lib/err.h"

struct node;
struct egress_client;

struct egress_sockets {
	int listener; /* -1: closed */
	uv_poll_t poll;
	uid_t user;
	struct egress_client *clients; /* berth-egress, which has them and sees our end */
};

must_check int egress_sockets_open(struct node *n, struct err *e);
void egress_sockets_close(struct node *n);

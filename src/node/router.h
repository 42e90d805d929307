/*
 * The router: one network namespace per host, where the links of all sandboxes end
 * and nothing else begins. There is no way from it to the outside; what berth-egress
 * passes on, it passes on from where it lives itself (proto/router.h).
 *
 * It must outlive berth-node as the sandboxes do, so a process of its own holds it, with
 * the two sockets: berth-router, which does nothing. A lock on RUN/router says that it is
 * there and which process it is; the next berth-node finds it by that.
 */
#pragma once

#include "node/netlink.h"
#include "proto/router.h"

struct router {
	int netns;                        /* -1: closed */
	int pidfd;                        /* pidfd of berth-router */
	int starting;                     /* readable when one that is begun is there, or ended */
	int mounts;                       /* the mount namespace berth-router lives in */
	int sockets[ROUTER_SOCKET_COUNT]; /* by enum router_socket_kind */
	int probe;                        /* a socket in it, to ask about links */
	struct netlink links;             /* NETLINK_ROUTE in it */
	struct netlink rules;             /* NETLINK_NETFILTER in it */
};

/*
 * Find it or make it. Rules are as new, with no link let in. Before the mount namespace is left:
 * berth-router must not hold what is mounted in ours.
 */
void router_init(struct router *r);
must_check int router_open(struct router *r, int run_fd, struct err *e);

/*
 * berth-router ended: another one is to hold the same, or the next berth-node would not find it.
 * Neither waits: the second is called once `starting` is readable.
 */
must_check int router_hold_begin(struct router *r, int run_fd, struct err *e);
must_check int router_hold_end(struct router *r, int run_fd, struct err *e);

/* It goes on, unless `end`: then it is gone when this returns. */
void router_close(struct router *r, int run_fd, bool end);

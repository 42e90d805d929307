/*
 * The router's sockets, as berth-node hands them to berth-egress.
 *
 * All sandboxes of a host have a link into one network namespace, the router,
 * which has no link to anywhere else. Whatever of a sandbox gets past its packet
 * rules ends in one of two sockets in there:
 *
 *   ROUTER_TCP  listens; accept() gives every TCP connection to any address and
 *               port. getpeername(): from which slot, the address of
 *               node_observation. getsockname(): whom it wanted to reach.
 *   ROUTER_UDP  every datagram to any address and port. IP_RECVORIGDSTADDR is
 *               set: each comes with whom it was for (port 53: a question; all
 *               else is there to be told of as refused). It is bound to port 53 and
 *               transparent: answer with IP_PKTINFO, ipi_spec_dst as asked.
 *
 * A source address is true: the router lets a link speak for its own slot only. Both
 * are non-blocking, bound for ever, and the same ones after a restart of anybody.
 *
 * berth-egress connects to the Unix socket `egress_socket` of berth-node
 * (SOCK_SEQPACKET, user `egress_user`), and gets one packet for each socket, with the
 * descriptor (lib/packet.h). Nothing else is ever said on it; the end of it means that
 * berth-node is gone, and that one connects again only to hear of its return.
 */
#pragma once

#include "proto/record.h"

#define ROUTER_VERSION      1
#define ROUTER_PACKET_MAX   64
#define ROUTER_ADDRESS_SIZE 16           /* "100.64.234.97" */
#define ROUTER_GATEWAY      "100.64.0.1" /* the way out, and the name server, of every sandbox */

enum router_socket_kind {
	ROUTER_NONE,
	ROUTER_TCP,
	ROUTER_UDP,
	ROUTER_SOCKET_COUNT
};

struct router_socket {
	uint32_t version;
	uint32_t kind; /* enum router_socket_kind */
};

void router_socket_encode(struct buf *out, enum router_socket_kind kind);
must_check int router_socket_decode(struct bytes wire, enum router_socket_kind *ret, struct err *e);

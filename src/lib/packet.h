/*
 * Packets over a SOCK_SEQPACKET Unix socket: one message each, with at most one
 * descriptor, and a queue for a peer that does not read fast enough.
 */
#pragma once

#include <sys/types.h>

#include "lib/buf.h"

struct packet;

struct packets {
	struct packet *first, **last;
	size_t bytes; /* waiting */
};

void packets_init(struct packets *q);
void packets_done(struct packets *q);

/* Takes the buffer's bytes; `fd` is duplicated, -1 for none. */
void packets_add(struct packets *q, struct buf *data, int fd);

/* Send what the socket takes. -1 with errno if the peer is gone. */
must_check int packets_flush(struct packets *q, int sock);

/* One packet. `*fd` is its descriptor or -1. 0 at the end; -1 with errno, also when cut. */
must_check ssize_t packet_receive(int sock, void *data, size_t size, int *fd);

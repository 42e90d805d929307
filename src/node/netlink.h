/* Netlink by libmnl: one question, one answer, and never more than one under way. */
#pragma once

#include <libmnl/libmnl.h>

#include "lib/err.h"

/* For all messages of one question. */
union netlink_buf {
	char bytes[2048];
	struct nlmsghdr align;
};

struct netlink {
	struct mnl_socket *socket; /* NULL: closed */
	uint32_t sequence;
};

/* In the network namespace this process is in now; it stays there wherever the process goes. */
must_check int netlink_open(struct netlink *nl, int bus, struct err *e);
void netlink_close(struct netlink *nl);

/* A new message of this type in `room`; the kernel is to say what became of it. */
struct nlmsghdr *netlink_message(struct netlink *nl, void *room, uint16_t type, uint16_t flags);

/*
 * Send what was built and hear that it was done. An answer of `fine` (an errno, or 0) is as
 * good as done: EEXIST where something is to be there, ENODEV where it is to be gone.
 */
must_check int netlink_do(struct netlink *nl, const struct nlmsghdr *message, size_t size, int fine,
			  struct err *e);

/* The same, where the answer is read: once for each message of it. -1 with errno. */
must_check int netlink_ask(struct netlink *nl, const struct nlmsghdr *message, size_t size,
			   mnl_cb_t each, void *arg);

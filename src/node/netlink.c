#include "node/netlink.h"

#include <errno.h>
#include <sys/socket.h>

#define ANSWER_MAX (16UL * 1024)

int netlink_open(struct netlink *nl, int bus, struct err *e)
{
	nl->socket = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!nl->socket)
		return err_sys(e, errno, "open netlink");
	if (mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) == 0)
		return 0;
	err_sys(e, errno, "bind netlink");
	netlink_close(nl);
	return -1;
}

void netlink_close(struct netlink *nl)
{
	if (nl->socket)
		(void)mnl_socket_close(nl->socket);
	nl->socket = NULL;
}

struct nlmsghdr *netlink_message(struct netlink *nl, void *room, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(room);

	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	m->nlmsg_seq = ++nl->sequence;
	return m;
}

/* What is left of an answer that was given up: the next one would be taken for it. */
static void drain(struct netlink *nl)
{
	char answer[ANSWER_MAX];

	while (recv(mnl_socket_get_fd(nl->socket), answer, sizeof(answer), MSG_DONTWAIT) >= 0)
		;
}

int netlink_ask(struct netlink *nl, const struct nlmsghdr *message, size_t size, mnl_cb_t each,
		void *arg)
{
	unsigned port = mnl_socket_get_portid(nl->socket);
	char answer[ANSWER_MAX];
	ssize_t n;
	int r = MNL_CB_OK;

	drain(nl);
	if (mnl_socket_sendto(nl->socket, message, size) < 0)
		return -1;
	while (r == MNL_CB_OK) {
		n = mnl_socket_recvfrom(nl->socket, answer, sizeof(answer));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		r = mnl_cb_run(answer, (size_t)n, nl->sequence, port, each, arg);
	}
	return r;
}

int netlink_do(struct netlink *nl, const struct nlmsghdr *message, size_t size, int fine,
	       struct err *e)
{
	if (netlink_ask(nl, message, size, NULL, NULL) == 0 || (fine && errno == fine))
		return 0;
	return err_sys(e, errno, "netlink");
}

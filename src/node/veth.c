#include "node/veth.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/if_link.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"
#include "lib/strv.h"
#include "node/netlink.h"
#include "node/udp-segments.h"

#define FIRST_ADDRESS 0x64400002U /* 100.64.0.2; ROUTER_GATEWAY is the one before */
#define GUEST_END     "eth0"
#define MARK          1 /* of packets that go to berth-egress, see router.c */
#define MARK_TABLE    100

/* The same on every wire: each has two ends only, and tells nothing about the host. */
static const uint8_t guest_mac[] = { 0x02, 0xbe, 0x27, 0, 0, 2 };
static const uint8_t router_mac[] = { 0x02, 0xbe, 0x27, 0, 0, 1 };

uint32_t veth_address(uint32_t slot)
{
	return htonl(FIRST_ADDRESS + slot);
}

void veth_address_text(uint32_t slot, char out[ROUTER_ADDRESS_SIZE])
{
	uint32_t address = veth_address(slot);

	(void)inet_ntop(AF_INET, &address, out, ROUTER_ADDRESS_SIZE);
}

void veth_name(uint32_t slot, char out[VETH_NAME_SIZE])
{
	snprintf(out, VETH_NAME_SIZE, "s%u", slot);
}

static uint32_t gateway(void)
{
	return inet_addr(ROUTER_GATEWAY);
}

/* ---- words of rtnetlink ---- */

static int say(struct netlink *nl, const struct nlmsghdr *m, int fine, const char *what,
	       struct err *e)
{
	return netlink_do(nl, m, m->nlmsg_len, fine, e) < 0 ? err_wrap(e, "%s", what) : 0;
}

static int make_pair(struct netlink *nl, int router, const char *name, struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct nlattr *info, *data, *peer;

	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(m, IFLA_IFNAME, GUEST_END);
	mnl_attr_put(m, IFLA_ADDRESS, sizeof(guest_mac), guest_mac);
	mnl_attr_put_u32(m, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(m, IFLA_NUM_RX_QUEUES, 1);
	info = mnl_attr_nest_start(m, IFLA_LINKINFO);
	mnl_attr_put_strz(m, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(m, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(m, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	mnl_attr_put(m, IFLA_ADDRESS, sizeof(router_mac), router_mac);
	mnl_attr_put_u32(m, IFLA_NUM_TX_QUEUES, 1);
	mnl_attr_put_u32(m, IFLA_NUM_RX_QUEUES, 1);
	mnl_attr_put_u32(m, IFLA_NET_NS_FD, (uint32_t)router);
	mnl_attr_nest_end(m, peer);
	mnl_attr_nest_end(m, data);
	mnl_attr_nest_end(m, info);
	return say(nl, m, 0, "make the link", e);
}

static int set_flags(struct netlink *nl, const char *name, unsigned flags, const char *label,
		     struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_NEWLINK, 0);
	struct ifinfomsg *link = mnl_nlmsg_put_extra_header(m, sizeof(*link));

	link->ifi_flags = link->ifi_change = flags;
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	if (label)
		mnl_attr_put_strz(m, IFLA_IFALIAS, label);
	return say(nl, m, 0, name, e);
}

/* It is up afterwards, and labelled unless that is NULL. */
static int bring_up(struct netlink *nl, const char *name, const char *label, struct err *e)
{
	return set_flags(nl, name, IFF_UP, label, e);
}

/*
 * Neither end asks or answers who has an address, as each knows the other. Otherwise a guest fills
 * the table of answers, which the host and all its namespaces share: with addresses it sends to
 * past the gateway (MSG_DONTROUTE), or says it has. Before the neighbour: it would be forgotten.
 */
static int bring_up_end(struct netlink *nl, const char *name, struct err *e)
{
	return set_flags(nl, name, IFF_UP | IFF_NOARP, NULL, e);
}

static int remove_link(struct netlink *nl, const char *name, struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_DELLINK, 0);

	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(m, IFLA_IFNAME, name);
	return say(nl, m, ENODEV, "remove the link", e);
}

static int add_address(struct netlink *nl, unsigned index, uint32_t address, struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL);
	struct ifaddrmsg *a = mnl_nlmsg_put_extra_header(m, sizeof(*a));

	a->ifa_family = AF_INET;
	a->ifa_prefixlen = 32;
	a->ifa_index = index;
	mnl_attr_put_u32(m, IFA_LOCAL, address);
	mnl_attr_put_u32(m, IFA_ADDRESS, address);
	return say(nl, m, EEXIST, "add the address", e);
}

struct route {
	uint8_t type, scope, bits; /* of the destination */
	uint32_t to, via;          /* 0: none */
	uint32_t table;
	unsigned index;
};

static int add_route(struct netlink *nl, const struct route *r, struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL);
	struct rtmsg *msg = mnl_nlmsg_put_extra_header(m, sizeof(*msg));

	*msg = (struct rtmsg){ .rtm_family = AF_INET,
			       .rtm_dst_len = r->bits,
			       .rtm_table = RT_TABLE_UNSPEC,
			       .rtm_protocol = RTPROT_STATIC,
			       .rtm_scope = r->scope,
			       .rtm_type = r->type };
	if (r->bits)
		mnl_attr_put_u32(m, RTA_DST, r->to);
	if (r->via)
		mnl_attr_put_u32(m, RTA_GATEWAY, r->via);
	mnl_attr_put_u32(m, RTA_OIF, r->index);
	mnl_attr_put_u32(m, RTA_TABLE, r->table);
	return say(nl, m, EEXIST, "add the route", e);
}

/* Known for ever: no ARP is needed. */
static int add_neighbour(struct netlink *nl, unsigned index, uint32_t address, const uint8_t *mac,
			 struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
	struct ndmsg *n = mnl_nlmsg_put_extra_header(m, sizeof(*n));

	n->ndm_family = AF_INET;
	n->ndm_ifindex = (int)index;
	n->ndm_state = NUD_PERMANENT;
	mnl_attr_put_u32(m, NDA_DST, address);
	mnl_attr_put(m, NDA_LLADDR, sizeof(guest_mac), mac);
	return say(nl, m, 0, "add the neighbour", e);
}

static int add_mark_rule(struct netlink *nl, struct err *e)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL);
	struct fib_rule_hdr *r = mnl_nlmsg_put_extra_header(m, sizeof(*r));

	r->family = AF_INET;
	r->table = MARK_TABLE;
	r->action = FR_ACT_TO_TBL;
	mnl_attr_put_u32(m, FRA_PRIORITY, MARK_TABLE);
	mnl_attr_put_u32(m, FRA_FWMARK, MARK);
	return say(nl, m, EEXIST, "add the rule", e);
}

static int find_link(const char *name, unsigned *index, struct err *e)
{
	*index = if_nametoindex(name);
	return *index ? 0 : err_sys(e, errno, "find %s", name);
}

/* ---- the ends ---- */

struct sysctl {
	const char *name, *value;
};

static int set_sysctls(const struct sysctl *all, size_t count, struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		if (access(all[i].name, F_OK) < 0 && errno == ENOENT)
			continue; /* a kernel without IPv6 */
		if (file_poke(AT_FDCWD, all[i].name, all[i].value, e) < 0)
			return -1;
	}
	return 0;
}

int veth_prepare_router(struct err *e)
{
	static const struct sysctl sysctls[] = {
		{ "/proc/sys/net/ipv4/ip_forward", "0" },
		{ "/proc/sys/net/ipv4/conf/all/rp_filter", "0" }, /* the rules know better */
		{ "/proc/sys/net/ipv4/conf/default/rp_filter", "0" },
		{ "/proc/sys/net/ipv6/conf/all/disable_ipv6", "1" },
		{ "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1" },
	};
	cleanup(netlink_close) struct netlink nl = { 0 };
	struct route all = {
		.type = RTN_LOCAL,
		.scope = RT_SCOPE_HOST,
		.table = MARK_TABLE,
	};

	if (set_sysctls(sysctls, array_len(sysctls), e) < 0 ||
	    netlink_open(&nl, NETLINK_ROUTE, e) < 0 || find_link("lo", &all.index, e) < 0 ||
	    bring_up(&nl, "lo", NULL, e) < 0 ||
	    add_address(&nl, all.index, gateway(), e) < 0 || add_mark_rule(&nl, e) < 0)
		return -1;
	return add_route(&nl, &all, e); /* what is marked is for us, whatever its address */
}

static int set_guest_end(struct netlink *nl, uint32_t address, struct err *e)
{
	struct route near = {
		.type = RTN_UNICAST,
		.scope = RT_SCOPE_LINK,
		.bits = 32,
		.to = gateway(),
		.table = RT_TABLE_MAIN,
	};
	struct route far = { .type = RTN_UNICAST, .via = gateway(), .table = RT_TABLE_MAIN };

	if (find_link(GUEST_END, &near.index, e) < 0)
		return -1;
	far.index = near.index;
	if (bring_up(nl, "lo", NULL, e) < 0 ||
	    add_address(nl, near.index, address, e) < 0 ||
	    udp_segments_turn_off(GUEST_END, e) < 0 ||
	    bring_up_end(nl, GUEST_END, e) < 0 ||
	    add_neighbour(nl, near.index, gateway(), router_mac, e) < 0 ||
	    add_route(nl, &near, e) < 0)
		return -1;
	return add_route(nl, &far, e);
}

static int set_router_end(struct netlink *nl, const char *name, uint32_t address, struct err *e)
{
	struct route back = {
		.type = RTN_UNICAST,
		.scope = RT_SCOPE_LINK,
		.bits = 32,
		.to = address,
		.table = RT_TABLE_MAIN,
	};

	if (find_link(name, &back.index, e) < 0 || bring_up_end(nl, name, e) < 0 ||
	    add_neighbour(nl, back.index, address, guest_mac, e) < 0)
		return -1;
	return add_route(nl, &back, e);
}

static int enter(int netns, struct err *e)
{
	return setns(netns, CLONE_NEWNET) < 0 ? err_sys(e, errno, "enter a network namespace") : 0;
}

/* This process in the router, and the way back. */
struct visit {
	int home;
	struct netlink nl;
};

static void visit_done(struct visit *v)
{
	netlink_close(&v->nl);
	close_fd(&v->home);
}

static int visit_begin(struct visit *v, int router, struct err *e)
{
	v->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (v->home < 0)
		return err_sys(e, errno, "open the network namespace");
	return enter(router, e) < 0 ? -1 : netlink_open(&v->nl, NETLINK_ROUTE, e);
}

static int visit_end(const struct visit *v, struct err *e)
{
	return enter(v->home, e);
}

static int make_namespace(struct visit *v, struct err *e)
{
	static const struct sysctl sysctls[] = {
		{ "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1" }, /* lo keeps it */
		/* No process inside has power over it, and root is to bind port 80 all the same. */
		{ "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0" },
		/* Copies of what was sent, in a queue that no cgroup counts. */
		{ "/proc/sys/net/core/tstamp_allow_data", "0" },
	};

	if (unshare(CLONE_NEWNET) < 0)
		return err_sys(e, errno, "make a network namespace");
	close_fd(&v->home);
	v->home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (v->home < 0)
		return err_sys(e, errno, "open the network namespace");
	return set_sysctls(sysctls, array_len(sysctls), e);
}

int veth_make(int router, uint32_t slot, struct err *e)
{
	cleanup(visit_done) struct visit v = { .home = -1 };
	cleanup(netlink_close) struct netlink here = { 0 };
	char name[VETH_NAME_SIZE];

	veth_name(slot, name);
	if (visit_begin(&v, router, e) < 0 || remove_link(&v.nl, name, e) < 0 ||
	    make_namespace(&v, e) < 0 || netlink_open(&here, NETLINK_ROUTE, e) < 0 ||
	    make_pair(&here, router, name, e) < 0)
		return -1;
	crash_point("node.wire-made");
	if (set_guest_end(&here, veth_address(slot), e) < 0 || enter(router, e) < 0 ||
	    set_router_end(&v.nl, name, veth_address(slot), e) < 0)
		return -1;
	crash_point("node.wire-set-up");
	return visit_end(&v, e);
}

int veth_label(int router, uint32_t slot, const char *allocation, struct err *e)
{
	cleanup(visit_done) struct visit v = { .home = -1 };
	char name[VETH_NAME_SIZE];

	veth_name(slot, name);
	if (visit_begin(&v, router, e) < 0 || bring_up(&v.nl, name, allocation, e) < 0)
		return -1;
	return visit_end(&v, e);
}

int veth_remove(int router, uint32_t slot, struct err *e)
{
	cleanup(visit_done) struct visit v = { .home = -1 };
	char name[VETH_NAME_SIZE];

	veth_name(slot, name);
	if (visit_begin(&v, router, e) < 0 || remove_link(&v.nl, name, e) < 0)
		return -1;
	crash_point("node.wire-removed");
	return visit_end(&v, e);
}

/* ---- to look ---- */

#define LIST_TRIES 16 /* of which each was disturbed by a link that came or went */

struct listing {
	struct strv names, labels;
};

static void listing_clear(struct listing *l)
{
	strv_done(&l->names);
	strv_done(&l->labels);
	*l = (struct listing){ 0 };
}

struct link_names {
	const char *name, *label;
};

static int on_attribute(const struct nlattr *a, void *arg)
{
	struct link_names *n = arg;

	if (mnl_attr_get_type(a) == IFLA_IFNAME)
		n->name = mnl_attr_get_str(a);
	if (mnl_attr_get_type(a) == IFLA_IFALIAS)
		n->label = mnl_attr_get_str(a);
	return MNL_CB_OK;
}

static int on_link(const struct nlmsghdr *m, void *arg)
{
	struct listing *l = arg;
	struct link_names n = { "", "" };

	(void)mnl_attr_parse(m, sizeof(struct ifinfomsg), on_attribute, &n);
	strv_add(&l->names, n.name);
	strv_add(&l->labels, n.label);
	return MNL_CB_OK;
}

static int list_once(struct netlink *nl, struct listing *l)
{
	union netlink_buf buf;
	struct nlmsghdr *m = netlink_message(nl, &buf, RTM_GETLINK, NLM_F_DUMP);

	mnl_nlmsg_put_extra_header(m, sizeof(struct ifinfomsg));
	return netlink_ask(nl, m, m->nlmsg_len, on_link, l);
}

int veth_list(struct netlink *nl, veth_fn *each, void *arg, struct err *e)
{
	cleanup(listing_clear) struct listing l = { 0 };
	int r = list_once(nl, &l);

	for (int i = 1; r < 0 && errno == EINTR && i < LIST_TRIES; i++) {
		listing_clear(&l); /* it may lack some, or have some twice */
		r = list_once(nl, &l);
	}
	if (r < 0)
		return err_sys(e, errno, "list the links of the router");
	for (size_t i = 0; i < l.names.len; i++) {
		const char *name = l.names.items[i];
		struct err ignored;
		uint64_t slot;

		if (name[0] == 's' && str_u64(name + 1, &slot, &ignored) == 0 && slot <= UINT32_MAX)
			each((uint32_t)slot, l.labels.items[i], arg);
	}
	return 0;
}

struct search {
	const char *label;
	uint32_t *slot;
	enum presence found;
};

static void on_candidate(uint32_t slot, const char *label, void *arg)
{
	struct search *s = arg;

	if (strcmp(label, s->label) != 0)
		return;
	*s->slot = slot;
	s->found = PRESENCE_PRESENT;
}

enum presence veth_find(struct netlink *nl, const char *label, uint32_t *slot)
{
	struct search s = { label, slot, PRESENCE_ABSENT };
	struct err e;

	return veth_list(nl, on_candidate, &s, &e) < 0 ? PRESENCE_UNKNOWN : s.found;
}

enum presence veth_observe(int probe, uint32_t slot)
{
	struct ifreq ask = { 0 };

	veth_name(slot, ask.ifr_name);
	if (ioctl(probe, SIOCGIFINDEX, &ask) == 0)
		return PRESENCE_PRESENT;
	return errno == ENODEV ? PRESENCE_ABSENT : PRESENCE_UNKNOWN;
}

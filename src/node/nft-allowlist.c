#include "node/nft-allowlist.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/proc.h"
#include "node/veth.h"

/*
 * Whatever is not let through here is dropped; there is no way out of this namespace
 * anyway. A flood of one link costs only that link: both sockets are shared by all.
 */
static const char rules[] =
	"table inet berth\n"
	"delete table inet berth\n"
	"table inet berth {\n"
	"	set live { type ifname . ipv4_addr; size 65536; }\n"
	"	set calls { type ifname; size 65536; flags dynamic,timeout; timeout 10s; }\n"
	"	set words { type ifname; size 65536; flags dynamic,timeout; timeout 10s; }\n"
	"	chain arriving {\n"
	"		type filter hook prerouting priority mangle; policy drop;\n"
	"		iifname . ip saddr @live meta l4proto vmap "
	"{ tcp : jump call, udp : jump word }\n"
	"	}\n"
	"	chain call {\n"
	"		tcp flags & (syn | ack) == syn update @calls "
	"{ iifname limit rate over 200/second burst 1000 packets } drop\n"
	"		meta l4proto tcp tproxy ip to :1 meta mark set 1 accept\n"
	"	}\n"
	"	chain word {\n"
	"		update @words "
	"{ iifname limit rate over 200/second burst 400 packets } drop\n"
	"		meta l4proto udp tproxy ip to :53 meta mark set 1 accept\n"
	"	}\n"
	"	chain between { type filter hook forward priority filter; policy drop; }\n"
	"	chain leaving {\n"
	"		type filter hook output priority filter; policy drop;\n"
	"		oifname . ip daddr @live accept\n"
	"	}\n"
	"}\n";

int nft_allowlist_load_rules(struct err *e)
{
	static const char *const argv[] = { "nft", "-f", "-", NULL };
	cleanup(close_fd) int text = memfd_create("rules", MFD_CLOEXEC);
	struct proc_spec spec = { .argv = argv, .in = text, .out = -1, .err = STDERR_FILENO };
	struct proc nft;
	int status;

	if (text < 0 || write_all(text, rules, strlen(rules)) < 0 || lseek(text, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "write the packet rules");
	if (proc_start(&spec, &nft, e) < 0)
		return -1;
	status = proc_wait(&nft);
	if (status == 0)
		return 0;
	err_set(e, ERR_UNSUPPORTED, "nft did not take the packet rules");
	return err_fix(e, "Install the package nftables; the lines above say what else it may be.");
}

/* As the set's type says, each part filled up to four bytes. */
struct live_key {
	char link[VETH_NAME_SIZE];
	uint32_t address;
};

static struct nlmsghdr *put_head(struct netlink *nl, void *at, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *m = netlink_message(nl, at, (NFNL_SUBSYS_NFTABLES << 8) | type, flags);
	struct nfgenmsg *g = mnl_nlmsg_put_extra_header(m, sizeof(*g));

	g->nfgen_family = NFPROTO_INET;
	g->version = NFNETLINK_V0;
	return m;
}

static void put_element(struct nlmsghdr *m, uint32_t slot)
{
	struct live_key key = { .address = veth_address(slot) };
	struct nlattr *list, *element, *value;

	veth_name(slot, key.link);
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_TABLE, "berth");
	mnl_attr_put_strz(m, NFTA_SET_ELEM_LIST_SET, "live");
	list = mnl_attr_nest_start(m, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = mnl_attr_nest_start(m, NFTA_LIST_ELEM);
	value = mnl_attr_nest_start(m, NFTA_SET_ELEM_KEY);
	mnl_attr_put(m, NFTA_DATA_VALUE, sizeof(key), &key);
	mnl_attr_nest_end(m, value);
	mnl_attr_nest_end(m, element);
	mnl_attr_nest_end(m, list);
}

/* Begin or end of what is done as one; it is answered by the message in between. */
static size_t put_mark(void *at, uint16_t type, uint32_t sequence)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(at);
	struct nfgenmsg *g = mnl_nlmsg_put_extra_header(m, sizeof(*g));

	m->nlmsg_type = type;
	m->nlmsg_flags = NLM_F_REQUEST;
	m->nlmsg_seq = sequence;
	g->version = NFNETLINK_V0;
	g->res_id = htons(NFNL_SUBSYS_NFTABLES);
	return m->nlmsg_len;
}

static int change(struct netlink *nl, uint32_t slot, uint16_t type, int fine, struct err *e)
{
	union netlink_buf buf;
	size_t len = put_mark(buf.bytes, NFNL_MSG_BATCH_BEGIN, nl->sequence + 1);
	struct nlmsghdr *m = put_head(nl, buf.bytes + len, type,
				      type == NFT_MSG_NEWSETELEM ? NLM_F_CREATE : 0);

	put_element(m, slot);
	len += m->nlmsg_len;
	len += put_mark(buf.bytes + len, NFNL_MSG_BATCH_END, nl->sequence);
	return netlink_do(nl, &buf.align, len, fine, e);
}

int nft_allowlist_add(struct netlink *nl, uint32_t slot, struct err *e)
{
	return change(nl, slot, NFT_MSG_NEWSETELEM, EEXIST, e) < 0
		       ? err_wrap(e, "let slot %u speak", slot)
		       : 0;
}

int nft_allowlist_remove(struct netlink *nl, uint32_t slot, struct err *e)
{
	return change(nl, slot, NFT_MSG_DELSETELEM, ENOENT, e) < 0
		       ? err_wrap(e, "silence slot %u", slot)
		       : 0;
}

enum presence nft_allowlist_observe(struct netlink *nl, uint32_t slot)
{
	union netlink_buf buf;
	struct nlmsghdr *m = put_head(nl, buf.bytes, NFT_MSG_GETSETELEM, 0);

	put_element(m, slot);
	if (netlink_ask(nl, m, m->nlmsg_len, NULL, NULL) == 0)
		return PRESENCE_PRESENT;
	return errno == ENOENT ? PRESENCE_ABSENT : PRESENCE_UNKNOWN;
}

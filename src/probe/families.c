/* Socket families and protocols: most are modules that the kernel loads when they are asked for. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "probe/probe.h"

#define INET  2
#define INET6 10

/* clang-format off */
#define FAMILY(name, stands, family, type, protocol) \
	{ name, stands, "socket(" #family ", " #type ", " #protocol ")", .judge = JUDGE_STRICT, \
	  .gvisor = "gVisor's network stack is its own", \
	  .call = SYS_socket, .args = { family, type, protocol } }

#define PACKET    17
#define ALG       38
#define VSOCK     40
#define XDP       44
#define KEY       15
#define RXRPC     33
#define BLUETOOTH 31
#define CAN       29
#define TIPC      30
#define RDS       21
#define SMC       43
#define NFC       39
#define QIPCRTR   42
#define LLC       26
#define KCM       41
#define PHONET    35
#define X25       9
#define APPLETALK 5
#define NETLINK   16
#define STREAM    1
#define DATAGRAM  2
#define RAW       3
#define SEQPACKET 5

const struct probe probe_families[] = {
	FAMILY("af-packet", "other hosts' frames: CVE-2020-14386", PACKET, RAW, 768),
	FAMILY("af-packet-datagram", "other hosts' frames: CVE-2016-8655", PACKET, DATAGRAM, 768),
	FAMILY("af-packet-old", "other hosts' frames", INET, 10, 768),
	FAMILY("af-alg", "page cache of shared files: CVE-2026-31431 (Copy Fail)", ALG, SEQPACKET,
	  0),
	FAMILY("af-vsock", "the machine below: CVE-2021-26708", VSOCK, STREAM, 0),
	FAMILY("af-xdp", "kernel surface", XDP, RAW, 0),
	FAMILY("af-key", "xfrm: CVE-2026-43284 (Dirty Frag)", KEY, RAW, 2),
	FAMILY("netlink-xfrm", "xfrm: CVE-2017-7184, CVE-2026-43284 (Dirty Frag)", NETLINK, RAW, 6),
	FAMILY("netlink-netfilter", "nf_tables: CVE-2024-1086", NETLINK, RAW, 12),
	FAMILY("netlink-generic", "kernel surface", NETLINK, RAW, 16),
	FAMILY("netlink-diag", "sockets of others", NETLINK, RAW, 4),
	FAMILY("netlink-audit", "the host's log", NETLINK, RAW, 9),
	FAMILY("netlink-uevent", "the host's devices", NETLINK, RAW, 15),
	FAMILY("netlink-connector", "processes of others", NETLINK, DATAGRAM, 11),
	FAMILY("netlink-crypto", "kernel surface", NETLINK, RAW, 21),
	FAMILY("af-rxrpc", "page cache of shared files: CVE-2026-43500 (Dirty Frag)", RXRPC,
	  DATAGRAM, INET),
	FAMILY("af-bluetooth", "kernel surface: CVE-2020-12351", BLUETOOTH, RAW, 1),
	FAMILY("af-can", "kernel surface: CVE-2021-3609", CAN, RAW, 1),
	FAMILY("af-tipc", "kernel surface: CVE-2021-43267", TIPC, SEQPACKET, 0),
	FAMILY("af-rds", "kernel surface: CVE-2010-3904", RDS, SEQPACKET, 0),
	FAMILY("af-smc", "kernel surface", SMC, STREAM, 0),
	FAMILY("af-nfc", "kernel surface: CVE-2021-23134", NFC, SEQPACKET, 1),
	FAMILY("af-qipcrtr", "kernel surface", QIPCRTR, DATAGRAM, 0),
	FAMILY("af-llc", "kernel surface: CVE-2017-6345", LLC, STREAM, 0),
	FAMILY("af-kcm", "kernel surface", KCM, DATAGRAM, 0),
	FAMILY("af-phonet", "kernel surface: CVE-2010-2653", PHONET, DATAGRAM, 0),
	FAMILY("af-x25", "kernel surface", X25, SEQPACKET, 0),
	FAMILY("af-appletalk", "kernel surface", APPLETALK, DATAGRAM, 0),
	FAMILY("raw-ipv4", "packets with any sender", INET, RAW, 255),
	FAMILY("raw-ipv6", "packets with any sender", INET6, RAW, 255),
	FAMILY("icmp-raw", "ICMP as a tunnel", INET, RAW, 1),
	FAMILY("icmp", "ICMP as a tunnel", INET, DATAGRAM, 1),
	FAMILY("icmp6", "ICMP as a tunnel", INET6, DATAGRAM, 58),
	FAMILY("sctp", "kernel surface: CVE-2019-8956", INET, SEQPACKET, 132),
	FAMILY("dccp", "kernel surface: CVE-2017-6074", INET, 6, 33),
	FAMILY("mptcp", "kernel surface: CVE-2025-23145", INET, STREAM, 262),
	FAMILY("udplite", "kernel surface", INET, DATAGRAM, 136),
	FAMILY("l2tp", "kernel surface: CVE-2022-4129", INET, DATAGRAM, 115),
	{ NULL },
};
/* clang-format on */

#include "node/seccomp.h"

#include <errno.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/random.h>
#include <linux/sockios.h>
#include <linux/udp.h>
#include <netinet/in.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/json.h"
#include "lib/str.h"

#define FILTER_MAX      (32 * 1024)

/*
 * Left out on purpose: everything that mounts, loads, traces across, reboots,
 * sets clocks, names keys, opens perf, bpf, userfaultfd or io_uring, makes or
 * joins namespaces, opens files by handle, or draws on a number that all of the
 * host share (fs.aio-max-nr).
 */
/* clang-format off */
static const char *const allowed[] = {
	"accept", "accept4", "access", "alarm", "arch_prctl", "bind", "brk", "capget", "capset",
	"chdir", "chmod", "chown", "clock_getres", "clock_gettime", "clock_nanosleep", "close",
	"close_range", "connect", "copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create",
	"epoll_create1", "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait",
	"epoll_wait_old", "eventfd", "eventfd2", "execve", "execveat", "exit", "exit_group",
	"faccessat", "faccessat2", "fadvise64", "fallocate", "fchdir", "fchmod", "fchmodat",
	"fchmodat2", "fchown", "fchownat", "fcntl", "fdatasync", "fgetxattr", "flistxattr", "flock",
	"fork", "fremovexattr", "fsetxattr", "fstat", "fstatfs", "fsync", "ftruncate", "futex",
	"futex_requeue", "futex_wait", "futex_waitv", "futex_wake", "futimesat", "getcpu", "getcwd",
	"getdents", "getdents64", "getegid", "geteuid", "getgid", "getgroups", "getitimer",
	"getpeername", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
	"getresgid", "getresuid", "getrlimit", "get_robust_list", "getrusage", "getsid",
	"getsockname", "getsockopt", "get_thread_area", "gettid", "gettimeofday", "getuid",
	"getxattr", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
	"ioprio_get", "ioprio_set", "kill", "landlock_add_rule",
	"landlock_create_ruleset", "landlock_restrict_self", "lchown", "lgetxattr", "link",
	"linkat", "listen", "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr",
	"lstat", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret",
	"mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock", "mlock2", "mlockall", "mmap",
	"mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend",
	"mq_unlink", "mremap", "mseal", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock",
	"munlockall", "munmap", "nanosleep", "newfstatat", "open", "openat", "openat2", "pause",
	"personality", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2", "pkey_alloc",
	"pkey_free", "pkey_mprotect", "poll", "ppoll", "pread64", "preadv", "preadv2",
	"process_mrelease", "pselect6", "pwrite64", "pwritev", "pwritev2", "read",
	"readahead", "readlink", "readlinkat", "readv", "recvfrom", "recvmmsg", "recvmsg",
	"remap_file_pages", "removexattr", "rename", "renameat", "renameat2", "restart_syscall",
	"rmdir", "rseq", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
	"rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo",
	"sched_getaffinity",
	"sched_getattr", "sched_getparam", "sched_get_priority_max", "sched_get_priority_min",
	"sched_getscheduler", "sched_rr_get_interval", "sched_setaffinity", "sched_setattr",
	"sched_setparam", "sched_setscheduler", "sched_yield", "select", "semctl", "semget",
	"semop",
	"semtimedop", "sendfile", "sendmmsg", "sendmsg", "sendto", "setfsgid", "setfsuid", "setgid",
	"setgroups", "setitimer", "setpgid", "setpriority", "setregid", "setresgid", "setresuid",
	"setreuid", "set_robust_list", "setsid", "set_thread_area",
	"set_tid_address", "setuid", "setxattr", "shmat", "shmctl", "shmdt", "shmget", "shutdown",
	"sigaltstack", "signalfd", "signalfd4", "socketpair", "splice", "stat", "statfs",
	"statx", "symlink", "symlinkat", "sync", "sync_file_range", "syncfs", "sysinfo", "tee",
	"tgkill", "time", "timer_create", "timer_delete", "timerfd_create", "timerfd_gettime",
	"timerfd_settime", "timer_getoverrun", "timer_gettime", "timer_settime", "times", "tkill",
	"truncate", "umask", "uname", "unlink", "unlinkat", "utime", "utimensat", "utimes", "vfork",
	"vmsplice", "wait4", "waitid", "write", "writev", "chroot", "ptrace", "process_vm_readv",
	"process_vm_writev",
};
/* clang-format on */

/* The same requests with a struct termios2, which libc's headers do not know: 44 bytes. */
#define GET2(n)         _IOR('T', n, char[44])
#define SET2(n)         _IOW('T', n, char[44])

/* Newer than libc's headers. */
#define SO_PASSPIDFD_   76
#define PR_SET_MDWE_    65
#define PR_GET_MDWE_    66
#define PR_GET_AUXV_    0x41555856

/*
 * What a driver or a file system answers to beside these is not for a guest: on
 * btrfs it would make subvolumes outside its quota. Not among them: TIOCSTI, line
 * disciplines, flags of files, and every way to change the network. A clone of a
 * file stays in its subvolume, and its quota.
 */
/* clang-format off */
static const uint32_t requests[] = {
	/* terminals */
	TCGETS, TCSETS, TCSETSW, TCSETSF, TCGETA, TCSETA, TCSETAW, TCSETAF, GET2(0x2a),
	SET2(0x2b), SET2(0x2c), SET2(0x2d), TCSBRK, TCSBRKP, TCXONC, TCFLSH, TIOCEXCL, TIOCNXCL,
	TIOCGEXCL, TIOCSCTTY, TIOCNOTTY, TIOCGPGRP, TIOCSPGRP, TIOCGSID, TIOCGWINSZ, TIOCSWINSZ,
	TIOCOUTQ, TIOCPKT, TIOCGPKT, TIOCGETD, TIOCMGET, TIOCGPTN, TIOCSPTLCK, TIOCGPTLCK,
	TIOCGPTPEER, TIOCGDEV, TIOCSIG,
	/* any descriptor */
	FIONREAD, FIONBIO, FIOASYNC, FIOCLEX, FIONCLEX, FIOQSIZE, FIOSETOWN, FIOGETOWN,
	/* files */
	FIGETBSZ, FICLONE, FICLONERANGE, FS_IOC_GETFLAGS,
	/* sockets, and looks at the network */
	SIOCATMARK, SIOCSPGRP, SIOCGPGRP, SIOCGSTAMP_OLD, SIOCGSTAMPNS_OLD, SIOCGIFNAME,
	SIOCGIFCONF, SIOCGIFFLAGS, SIOCGIFADDR, SIOCGIFDSTADDR, SIOCGIFBRDADDR, SIOCGIFNETMASK,
	SIOCGIFMETRIC, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGIFINDEX, SIOCGIFTXQLEN, SIOCGIFMAP,
	/* random devices */
	RNDGETENTCNT,
};
/* clang-format on */

/*
 * Options at SOL_SOCKET. Not among them: every filter, because its machine code is of
 * net.core.bpf_jit_limit, one number for the host, and without a rest of it no sandbox starts; what
 * fills queues that no cgroup counts (SO_TIMESTAMPING, SO_WIFI_STATUS, SO_TXTIME, SO_ZEROCOPY); and
 * polling that takes the host's CPUs.
 */
/* clang-format off */
static const uint32_t options[] = {
	SO_REUSEADDR, SO_REUSEPORT, SO_KEEPALIVE, SO_BROADCAST, SO_DONTROUTE, SO_LINGER,
	SO_OOBINLINE, SO_SNDBUF, SO_RCVBUF, SO_BUF_LOCK, SO_SNDLOWAT, SO_RCVLOWAT, SO_PEEK_OFF,
	SO_SNDTIMEO_OLD, SO_RCVTIMEO_OLD, SO_SNDTIMEO_NEW, SO_RCVTIMEO_NEW, SO_NO_CHECK,
	SO_BSDCOMPAT, SO_PRIORITY, SO_BINDTODEVICE, SO_BINDTOIFINDEX, SO_INCOMING_CPU,
	SO_PASSCRED, SO_PASSSEC, SO_PASSPIDFD_, SO_TIMESTAMP_OLD, SO_TIMESTAMPNS_OLD,
	SO_TIMESTAMP_NEW, SO_TIMESTAMPNS_NEW, SO_RXQ_OVFL, SO_SELECT_ERR_QUEUE,
	SO_MAX_PACING_RATE, SO_TXREHASH,
};

/* Of prctl(). Not among them: PR_SET_SECCOMP (a filter, as above), and what needs more rights. */
static const uint32_t actions[] = {
	PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, PR_GET_KEEPCAPS,
	PR_SET_KEEPCAPS, PR_GET_TIMING, PR_SET_TIMING, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP,
	PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_GET_TSC, PR_SET_TSC, PR_GET_SECUREBITS,
	PR_SET_SECUREBITS, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_CHILD_SUBREAPER,
	PR_GET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS,
	PR_SET_THP_DISABLE, PR_GET_THP_DISABLE, PR_CAP_AMBIENT, PR_GET_SPECULATION_CTRL,
	PR_SET_SPECULATION_CTRL, PR_SET_SYSCALL_USER_DISPATCH, PR_SET_MDWE_, PR_GET_MDWE_,
	PR_SET_PTRACER, PR_SET_VMA, PR_GET_AUXV_,
};
/* clang-format on */

/* CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET} */
#define NAMESPACE_FLAGS 0x7e020080

/* clang-format off */
#define SOCKET(family, protocol) \
	{ "socket", 0, 2, { { 0, SCMP_CMP_EQ, family, 0 }, { 2, SCMP_CMP_EQ, protocol, 0 } } }
#define OPTION(level, how, a, b) \
	{ "setsockopt", 0, 2, { { 1, SCMP_CMP_EQ, level, 0 }, { 2, how, a, b } } }
#define OPTIONS(level) \
	{ "setsockopt", 0, 1, { { 1, SCMP_CMP_EQ, level, 0 } } }

/*
 * Every limit may be set but RLIMIT_CORE, 4, which is told as done: 0 in place of our 1 would let
 * a dump go to the host's core_pattern, and a guest that sets one wants none made. Of the low four
 * bits one is not as in 4; the higher ones must not be looked at, for the kernel does not.
 */
#define NOT_DONE (-1)
#define LIMIT(name, arg, mask, value) \
	{ name, 0, 1, { { arg, SCMP_CMP_MASKED_EQ, mask, value } } }
#define LIMITS(name, arg) \
	LIMIT(name, arg, 0x01, 0x01), LIMIT(name, arg, 0x02, 0x02), \
	LIMIT(name, arg, 0x04, 0x00), LIMIT(name, arg, 0x08, 0x08)

#define OWN_LIMIT(name, mask, value) \
	{ name, 0, 2, { { 0, SCMP_CMP_MASKED_EQ, UINT32_MAX, 0 }, \
			{ 1, SCMP_CMP_MASKED_EQ, mask, value } } }
#define OWN_LIMITS(name) \
	OWN_LIMIT(name, 0x01, 0x01), OWN_LIMIT(name, 0x02, 0x02), \
	OWN_LIMIT(name, 0x04, 0x00), OWN_LIMIT(name, 0x08, 0x08)

static const struct rule {
	const char *name;
	int fails_with;			/* 0: allowed; NOT_DONE: told as done */
	unsigned count;
	struct scmp_arg_cmp args[2];
} conditional[] = {
	/* Unix, TCP, UDP and route netlink. No packet, vsock, alg, xfrm, sctp and the rest. */
	{ "socket", 0, 1, { { 0, SCMP_CMP_EQ, AF_UNIX, 0 } } },
	SOCKET(AF_INET, 0),
	SOCKET(AF_INET, IPPROTO_TCP),
	SOCKET(AF_INET, IPPROTO_UDP),
	SOCKET(AF_INET6, 0),
	SOCKET(AF_INET6, IPPROTO_TCP),
	SOCKET(AF_INET6, IPPROTO_UDP),
	SOCKET(AF_NETLINK, NETLINK_ROUTE),
	/* All of TCP's options but TCP_ULP, 31: one of its low five bits is 0, or the next is 1. */
	OPTION(IPPROTO_TCP, SCMP_CMP_MASKED_EQ, 0x01, 0),
	OPTION(IPPROTO_TCP, SCMP_CMP_MASKED_EQ, 0x02, 0),
	OPTION(IPPROTO_TCP, SCMP_CMP_MASKED_EQ, 0x04, 0),
	OPTION(IPPROTO_TCP, SCMP_CMP_MASKED_EQ, 0x08, 0),
	OPTION(IPPROTO_TCP, SCMP_CMP_MASKED_EQ, 0x10, 0),
	OPTION(IPPROTO_TCP, SCMP_CMP_MASKED_EQ, 0x20, 0x20),
	/* Of UDP's all but UDP_ENCAP: ESP is nothing for a guest. */
	OPTION(IPPROTO_UDP, SCMP_CMP_EQ, UDP_CORK, 0),
	OPTION(IPPROTO_UDP, SCMP_CMP_EQ, UDP_NO_CHECK6_TX, 0),
	OPTION(IPPROTO_UDP, SCMP_CMP_EQ, UDP_NO_CHECK6_RX, 0),
	OPTION(IPPROTO_UDP, SCMP_CMP_EQ, UDP_SEGMENT, 0),
	OPTION(IPPROTO_UDP, SCMP_CMP_EQ, UDP_GRO, 0),
	OPTIONS(IPPROTO_IP),
	OPTIONS(IPPROTO_IPV6),
	OPTIONS(IPPROTO_ICMPV6),
	OPTIONS(SOL_NETLINK),
	{ "clone",  0, 1, { { 0, SCMP_CMP_MASKED_EQ, NAMESPACE_FLAGS, 0 } } },
	{ "clone3", ENOSYS, 0, { { 0 } } },
	{ "io_setup", ENOSYS, 0, { { 0 } } },
	/* As of a kernel without filters: what would use one does without. */
	{ "prctl", EINVAL, 1, { { 0, SCMP_CMP_MASKED_EQ, UINT32_MAX, PR_SET_SECCOMP } } },
	{ "seccomp", ENOSYS, 0, { { 0 } } },
	LIMITS("setrlimit", 0),
	{ "setrlimit", NOT_DONE, 1, { { 0, SCMP_CMP_MASKED_EQ, 0x0f, 0x04 } } },
	/* Of its own process: those of init's are not the guest's to lower. */
	OWN_LIMITS("prlimit64"),
	{ "prlimit64", 0, 1, { { 2, SCMP_CMP_EQ, 0, 0 } } }, /* only asks */
	{ "prlimit64", NOT_DONE, 2, { { 1, SCMP_CMP_MASKED_EQ, 0x0f, 0x04 },
				      { 2, SCMP_CMP_GT, 0, 0 } } },
};
/* clang-format on */

/* The kernel looks at the low half of a request only, and so do we. */
static struct rule request_rule(uint32_t request)
{
	return (struct rule){
		"ioctl", 0, 1, { { 1, SCMP_CMP_MASKED_EQ, UINT32_MAX, request } }
	};
}

static struct rule option_rule(uint32_t option)
{
	return (struct rule)OPTION(SOL_SOCKET, SCMP_CMP_EQ, option, 0);
}

static struct rule action_rule(uint32_t action)
{
	return (struct rule){
		"prctl", 0, 1, { { 0, SCMP_CMP_MASKED_EQ, UINT32_MAX, action } }
	};
}

/* A call that is allowed with these numbers only. */
static const struct {
	const uint32_t *numbers;
	size_t count;
	struct rule (*rule)(uint32_t number);
} numbered[] = {
	{ requests, array_len(requests), request_rule },
	{ options, array_len(options), option_rule },
	{ actions, array_len(actions), action_rule },
};

/* What the guest reads in errno; 0: its call seems to have worked. */
static int told(const struct rule *r)
{
	return r->fails_with == NOT_DONE ? 0 : r->fails_with;
}

static const char *op_name(enum scmp_compare op)
{
	return op == SCMP_CMP_EQ ? "SCMP_CMP_EQ" : op == SCMP_CMP_GT ? "SCMP_CMP_GT"
								     : "SCMP_CMP_MASKED_EQ";
}

static void write_arg(struct buf *out, const struct scmp_arg_cmp *arg)
{
	json_open(out, '{');
	json_int(out, "index", arg->arg);
	json_int(out, "value", (int64_t)arg->datum_a);
	json_int(out, "valueTwo", (int64_t)arg->datum_b);
	json_str(out, "op", op_name(arg->op));
	buf_adds(out, "}");
}

static void write_rule(struct buf *out, const struct rule *r)
{
	json_open(out, '{');
	json_key(out, "names");
	json_open(out, '[');
	json_add_string(out, r->name);
	buf_adds(out, "]");
	json_str(out, "action", r->fails_with ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW");
	if (r->fails_with)
		json_int(out, "errnoRet", told(r));
	json_key(out, "args");
	json_open(out, '[');
	for (unsigned i = 0; i < r->count; i++)
		write_arg(out, &r->args[i]);
	buf_adds(out, "]}");
}

void seccomp_write(struct buf *out)
{
	json_open(out, '{');
	json_str(out, "defaultAction", "SCMP_ACT_ERRNO");
	json_int(out, "defaultErrnoRet", EPERM);
	/* No "architectures": only the native one passes. A 32-bit call kills its process. */
	json_key(out, "syscalls");
	json_open(out, '[');
	json_open(out, '{');
	json_key(out, "names");
	json_open(out, '[');
	for (size_t i = 0; i < array_len(allowed); i++) {
		if (i > 0)
			buf_adds(out, ",");
		json_add_string(out, allowed[i]);
	}
	buf_adds(out, "]");
	json_str(out, "action", "SCMP_ACT_ALLOW");
	buf_adds(out, "}");
	for (size_t i = 0; i < array_len(conditional); i++)
		write_rule(out, &conditional[i]);
	for (size_t i = 0; i < array_len(numbered); i++)
		for (size_t k = 0; k < numbered[i].count; k++) {
			struct rule r = numbered[i].rule(numbered[i].numbers[k]);

			write_rule(out, &r);
		}
	buf_adds(out, "]}");
}

static int add_rule(scmp_filter_ctx ctx, const struct rule *r)
{
	int number = seccomp_syscall_resolve_name(r->name);

	if (number == __NR_SCMP_ERROR)
		return 0; /* not of this architecture, or newer than the library: refused */
	return seccomp_rule_add_array(ctx,
				      r->fails_with ? SCMP_ACT_ERRNO((uint32_t)told(r))
						    : SCMP_ACT_ALLOW,
				      number, r->count, r->args);
}

static int add_rules(scmp_filter_ctx ctx)
{
	int r = 0;

	for (size_t i = 0; i < array_len(allowed) && r == 0; i++)
		r = add_rule(ctx, &(struct rule){ .name = allowed[i] });
	for (size_t i = 0; i < array_len(conditional) && r == 0; i++)
		r = add_rule(ctx, &conditional[i]);
	for (size_t i = 0; i < array_len(numbered); i++)
		for (size_t k = 0; k < numbered[i].count && r == 0; k++) {
			struct rule one = numbered[i].rule(numbered[i].numbers[k]);

			r = add_rule(ctx, &one);
		}
	return r;
}

static void filter_done(scmp_filter_ctx *ctx)
{
	seccomp_release(*ctx);
}

int seccomp_compile(struct buf *out, struct err *e)
{
	cleanup(filter_done) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	cleanup(close_fd) int fd = memfd_create("seccomp", MFD_CLOEXEC);
	char code[FILTER_MAX];
	ssize_t len;
	int r;

	if (!ctx || fd < 0)
		return err_set(e, ERR_INTERNAL, "cannot make a system call filter");
	r = add_rules(ctx);
	if (r == 0)
		r = seccomp_export_bpf(ctx, fd);
	if (r < 0)
		return err_sys(e, -r, "compile the system call filter");
	len = pread(fd, code, sizeof(code), 0);
	if (len <= 0 || (size_t)len == sizeof(code))
		return err_set(e, ERR_INTERNAL, "the system call filter has no sensible size");
	base64_add(out, code, (size_t)len);
	return 0;
}

#include "node/seccomp.h"

#include "lib/json.h"

/*
 * Left out on purpose: everything that mounts, loads, traces across, reboots,
 * sets clocks, names keys, opens perf, bpf, userfaultfd or io_uring, makes or
 * joins namespaces, or opens files by handle.
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
	"io_cancel", "ioctl", "io_destroy", "io_getevents", "io_pgetevents", "ioprio_get",
	"ioprio_set", "io_setup", "io_submit", "kill", "landlock_add_rule",
	"landlock_create_ruleset", "landlock_restrict_self", "lchown", "lgetxattr", "link",
	"linkat", "listen", "listxattr", "llistxattr", "lremovexattr", "lseek", "lsetxattr",
	"lstat", "madvise", "map_shadow_stack", "membarrier", "memfd_create", "memfd_secret",
	"mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock", "mlock2", "mlockall", "mmap",
	"mprotect", "mq_getsetattr", "mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend",
	"mq_unlink", "mremap", "mseal", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock",
	"munlockall", "munmap", "nanosleep", "newfstatat", "open", "openat", "openat2", "pause",
	"personality", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2", "pkey_alloc",
	"pkey_free", "pkey_mprotect", "poll", "ppoll", "prctl", "pread64", "preadv", "preadv2",
	"prlimit64", "process_mrelease", "pselect6", "pwrite64", "pwritev", "pwritev2", "read",
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
	"setreuid", "setrlimit", "set_robust_list", "setsid", "setsockopt", "set_thread_area",
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

/* Unix, IPv4, IPv6 and route netlink. No packet, vsock, alg, xfrm and the rest. */
static const int families[] = { 1, 2, 10 };
#define FAMILY_NETLINK  16
#define NETLINK_ROUTE   0
/* CLONE_NEW{TIME,NS,CGROUP,UTS,IPC,USER,PID,NET} */
#define NAMESPACE_FLAGS 0x7e020080

static void rule_open(struct buf *out, const char *name, const char *action)
{
	json_open(out, '{');
	json_key(out, "names");
	json_open(out, '[');
	json_add_string(out, name);
	buf_adds(out, "]");
	json_str(out, "action", action);
}

static void arg(struct buf *out, int index, int value, int value_two, const char *op)
{
	json_open(out, '{');
	json_int(out, "index", index);
	json_int(out, "value", value);
	if (value_two >= 0)
		json_int(out, "valueTwo", value_two);
	json_str(out, "op", op);
	buf_adds(out, "}");
}

static void socket_rules(struct buf *out)
{
	for (size_t i = 0; i < array_len(families); i++) {
		rule_open(out, "socket", "SCMP_ACT_ALLOW");
		json_key(out, "args");
		json_open(out, '[');
		arg(out, 0, families[i], -1, "SCMP_CMP_EQ");
		buf_adds(out, "]}");
	}
	rule_open(out, "socket", "SCMP_ACT_ALLOW");
	json_key(out, "args");
	json_open(out, '[');
	arg(out, 0, FAMILY_NETLINK, -1, "SCMP_CMP_EQ");
	arg(out, 2, NETLINK_ROUTE, -1, "SCMP_CMP_EQ");
	buf_adds(out, "]}");
}

static void clone_rules(struct buf *out)
{
	rule_open(out, "clone", "SCMP_ACT_ALLOW");
	json_key(out, "args");
	json_open(out, '[');
	arg(out, 0, NAMESPACE_FLAGS, 0, "SCMP_CMP_MASKED_EQ");
	buf_adds(out, "]}");
	rule_open(out, "clone3", "SCMP_ACT_ERRNO");
	json_int(out, "errnoRet", 38); /* ENOSYS */
	buf_adds(out, "}");
}

void seccomp_write(struct buf *out)
{
	json_open(out, '{');
	json_str(out, "defaultAction", "SCMP_ACT_ERRNO");
	json_int(out, "defaultErrnoRet", 1); /* EPERM */
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
	socket_rules(out);
	clone_rules(out);
	buf_adds(out, "]}");
}

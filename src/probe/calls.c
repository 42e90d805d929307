/* System calls no sandbox needs: what is behind them has had holes, and will. */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe/probe.h"

#define OWN_KERNEL  "it is gVisor's kernel that answers, not the host's"

/* Of seccomp(). */
#define SET_FILTER  1
#define MODE_FILTER 2
#define ALLOW       0x7fff0000

static char scratch[4096];

#define ADDRESS ((long)(intptr_t)scratch)
#define TEXT(s) ((long)(intptr_t)(s))

static long try_clock_settime(struct attempt *a)
{
	struct timespec now;

	(void)a;
	clock_gettime(CLOCK_REALTIME, &now);
	return syscall(SYS_clock_settime, CLOCK_REALTIME, &now);
}

static long try_perf(struct attempt *a)
{
	(void)a;
	scratch[0] = 1; /* software */
	scratch[4] = 112;
	return syscall(SYS_perf_event_open, scratch, 0, -1, -1, 0);
}

static long try_realtime(struct attempt *a)
{
	struct sched_param p = { .sched_priority = 50 };

	(void)a;
	return syscall(SYS_sched_setscheduler, 0, 1, &p);
}

/* Really set, on this process alone; what refuses it may say that there are none. */
static long try_call_filter(struct attempt *a)
{
	struct filter_code pass = { .code = FILTER_RETURN, .k = ALLOW };
	struct filter program = { .len = 1, .code = &pass };

	(void)a;
	if (syscall(SYS_seccomp, SET_FILTER, 0, &program) == 0)
		return 0;
	return prctl(PR_SET_SECCOMP, MODE_FILTER, &program);
}

/* clang-format off */
#define CALL(name, stands, tries, number, ...) \
	{ name, stands, tries, .judge = JUDGE_STRICT, .gvisor = OWN_KERNEL, .call = number, \
	  .args = { __VA_ARGS__ } }

const struct probe probe_calls[] = {
	CALL("bpf", "kernel surface: CVE-2021-3490, CVE-2022-23222", "bpf()", SYS_bpf, 999, ADDRESS,
	  72),
	{ "call-filter", "a number all of the host share: net.core.bpf_jit_limit",
	  "seccomp(SET_MODE_FILTER), prctl(PR_SET_SECCOMP)", try_call_filter, JUDGE_ANY,
	  OWN_KERNEL },
	{ "perf", "kernel surface: CVE-2013-2094, CVE-2023-2235", "perf_event_open()", try_perf,
	  JUDGE_STRICT, OWN_KERNEL },
	CALL("io-uring-setup", "kernel surface: CVE-2022-29582, CVE-2024-0582", "io_uring_setup()",
	     425, 8, ADDRESS),
	CALL("io-uring-enter", "kernel surface: CVE-2023-2598", "io_uring_enter()", 426, -1, 0, 0,
	  0, 0, 0),
	CALL("io-uring-register", "kernel surface: CVE-2023-2598", "io_uring_register()", 427, -1,
	  0, 0, 0),
	CALL("aio", "a number all of the host share: fs.aio-max-nr", "io_setup()", SYS_io_setup, 1,
	  0),
	CALL("userfaultfd", "kernel races made easy: CVE-2022-2590", "userfaultfd()",
	  SYS_userfaultfd, 1),
	CALL("keyctl", "keys are not in a namespace of ours: CVE-2016-0728", "keyctl()", SYS_keyctl,
	  0, -3, 1),
	CALL("add-key", "keys are not in a namespace of ours", "add_key()", SYS_add_key,
	     TEXT("user"), TEXT("x"), TEXT("y"), 1, -3),
	CALL("request-key", "keys: a program of the host is started", "request_key()",
	  SYS_request_key, 0, 0, 0, -3),
	CALL("init-module", "kernel code", "init_module()", SYS_init_module, 0, 0, 0),
	CALL("finit-module", "kernel code", "finit_module()", SYS_finit_module, -1, TEXT(""), 0),
	CALL("delete-module", "kernel code", "delete_module()", SYS_delete_module, TEXT("berth"),
	  0),
	CALL("kexec", "another kernel", "kexec_load()", SYS_kexec_load, 0, 0, 0, 1 << 20),
	CALL("kexec-file", "another kernel", "kexec_file_load()", 320, -1, -1, 0, 0, 1 << 20),
	CALL("reboot", "the host's life", "reboot() with a wrong number", SYS_reboot, 1, 2, 0, 0),
	CALL("swapon", "the host's memory", "swapon()", SYS_swapon, TEXT("/nothing"), 0),
	CALL("swapoff", "the host's memory", "swapoff()", SYS_swapoff, TEXT("/nothing")),
	CALL("settimeofday", "the host's clock", "settimeofday() without a time", SYS_settimeofday,
	  0, 0),
	{ "clock-settime", "the host's clock", "clock_settime() to what it is", try_clock_settime,
	  JUDGE_STRICT, NULL },
	CALL("sethostname", "names", "sethostname() too long", SYS_sethostname, TEXT("x"), 70000),
	CALL("setdomainname", "names", "setdomainname() too long", SYS_setdomainname, TEXT("x"),
	  70000),
	CALL("acct", "files written by the kernel", "acct()", SYS_acct, TEXT("/nothing")),
	CALL("quotactl", "the host's disks", "quotactl()", SYS_quotactl, 0x80000100, 0, 0, 0),
	CALL("quotactl-fd", "the host's disks", "quotactl_fd()", 443, -1, 0, 0, 0),
	CALL("name-to-handle", "files by handle", "name_to_handle_at()", 303, -100, TEXT("/"),
	  ADDRESS, ADDRESS + 512, 0),
	CALL("open-by-handle", "files by handle: the Shocker escape", "open_by_handle_at()",
	     304, -100, ADDRESS, 0),
	CALL("syslog", "kernel addresses and secrets", "syslog()", SYS_syslog, 10, 0, 0),
	CALL("fanotify", "kernel surface", "fanotify_init()", SYS_fanotify_init, 0, 0),
	CALL("iopl", "hardware", "iopl()", SYS_iopl, 3),
	CALL("ioperm", "hardware", "ioperm()", SYS_ioperm, 0x80, 1, 1),
	CALL("modify-ldt", "kernel surface: CVE-2015-5157", "modify_ldt()", SYS_modify_ldt, 0,
	  ADDRESS, 16),
	CALL("kcmp", "kernel addresses", "kcmp()", 312, 0, 0, 0, 0, 0),
	CALL("move-pages", "kernel addresses: CVE-2017-14140", "move_pages()", SYS_move_pages, 0, 0,
	  0, 0, 0, 0),
	CALL("mbind", "kernel surface: CVE-2017-7616", "mbind()", SYS_mbind, 0, 0, 0, 0, 0, 0),
	CALL("set-mempolicy", "kernel surface", "set_mempolicy()", SYS_set_mempolicy, 0, 0, 0),
	CALL("process-madvise", "other processes", "process_madvise()", 440, -1, 0, 0, 0, 0),
	CALL("pidfd-getfd", "other processes' descriptors", "pidfd_getfd()", 438, -1, 0, 0),
	CALL("cachestat", "page cache as a side channel", "cachestat()", 451, -1, ADDRESS, ADDRESS,
	  0),
	CALL("vhangup", "terminals of the host", "vhangup()", SYS_vhangup),
	CALL("ustat", "kernel surface", "ustat()", SYS_ustat, 0, ADDRESS),
	CALL("sysfs", "kernel surface", "sysfs()", SYS_sysfs, 3),
	CALL("lsm-attributes", "labels", "lsm_set_self_attr()", 460, 100, 0, 0, 0),
	CALL("nice", "the host's CPUs", "setpriority(-20)", SYS_setpriority, 0, 0, -20),
	{ "realtime", "the host's CPUs", "sched_setscheduler(FIFO)", try_realtime, JUDGE_STRICT,
	  "the priority is gVisor's kernel's" },
	CALL("io-realtime", "the host's disks", "ioprio_set(realtime)", SYS_ioprio_set, 1, 0,
	  1 << 13),
	{ NULL },
};
/* clang-format on */

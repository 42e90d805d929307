/*
 * Runs inside a sandbox and tries things. `probe NAME` prints "NAME: ok" if it
 * worked and "NAME: errno" if it was refused; `probe all` tries everything that
 * must be refused. `probe eat MB` takes memory until somebody stops it. `probe
 * liar HEX` (runsc) takes init's place on its socket, and says HEX to everybody.
 * `probe terminals SECONDS` opens as many as it gets.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define AF_ALG_   38
#define AF_VSOCK_ 40

static char scratch[65536];

static long try_mount(void)
{
	return mount("none", "/tmp", "tmpfs", 0, NULL);
}
static long try_bind(void)
{
	return mount("/bin", "/tmp", NULL, MS_BIND, NULL);
}
static long try_proc(void)
{
	return mount("proc", "/tmp", "proc", 0, NULL);
}
static long try_remount(void)
{
	return mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL);
}
static long try_umount(void)
{
	return umount2("/proc/sys", MNT_DETACH);
}
static long try_pivot(void)
{
	return syscall(SYS_pivot_root, "/tmp", "/tmp");
}
static long try_open_tree(void)
{
	return syscall(428, AT_FDCWD, "/bin", 1);
}
static long try_fsopen(void)
{
	return syscall(430, "tmpfs", 0);
}
static long try_unshare_user(void)
{
	return unshare(CLONE_NEWUSER);
}
static long try_unshare_mount(void)
{
	return unshare(CLONE_NEWNS);
}
static long try_unshare_pid(void)
{
	return unshare(CLONE_NEWPID);
}
static long try_unshare_net(void)
{
	return unshare(CLONE_NEWNET);
}
static long try_clone_user(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0)
		_exit(0);
	return pid;
}
static long try_clone3_user(void)
{
	unsigned long long args[11] = { CLONE_NEWUSER, 0, 0, 0, SIGCHLD };
	long pid = syscall(435, args, 64);

	if (pid == 0)
		_exit(0);
	return pid;
}
static long try_setns(void)
{
	int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? fd : setns(fd, 0);
}
static long try_ptrace_init(void)
{
	return ptrace(PTRACE_ATTACH, 1, 0, 0);
}
static long try_read_init_memory(void)
{
	struct iovec local = { scratch, 8 }, remote = { (void *)0x400000, 8 };

	return process_vm_readv(1, &local, 1, &remote, 1, 0);
}
static long try_open_init_memory(void)
{
	return open("/proc/1/mem", O_RDWR | O_CLOEXEC);
}
static long try_open_init_fd(void)
{
	return open("/proc/1/fd/2", O_WRONLY | O_APPEND | O_CLOEXEC);
}
static long try_pidfd_getfd(void)
{
	long fd = syscall(434, 1, 0);

	return fd < 0 ? fd : syscall(438, fd, 3, 0);
}
static long try_init_environment(void)
{
	int fd = open("/proc/1/environ", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? fd : read(fd, scratch, sizeof(scratch)) > 0 ? 0
								    : -1;
}
static long try_add_key(void)
{
	return syscall(SYS_add_key, "user", "x", "y", 1, -3);
}
static long try_keyctl(void)
{
	return syscall(SYS_keyctl, 0, -3, 1);
}
static long try_bpf(void)
{
	return syscall(SYS_bpf, 0, scratch, 72);
}
static long try_perf(void)
{
	memset(scratch, 0, 128);
	scratch[0] = 1;
	scratch[4] = 112;
	return syscall(SYS_perf_event_open, scratch, 0, -1, -1, 0);
}
static long try_io_uring(void)
{
	return syscall(425, 8, memset(scratch, 0, 256));
}
static long try_userfaultfd(void)
{
	return syscall(SYS_userfaultfd, 0);
}
static long try_module(void)
{
	return syscall(SYS_init_module, scratch, 16, "");
}
static long try_kexec(void)
{
	return syscall(SYS_kexec_load, 0, 0, 0, 0);
}
static long try_reboot(void)
{
	return syscall(SYS_reboot, 0xfee1dead, 672274793, 0, 0);
}
static long try_swapon(void)
{
	return syscall(SYS_swapon, "/tmp/x", 0);
}
static long try_settime(void)
{
	struct timespec t = { 1000000000, 0 };

	return syscall(SYS_clock_settime, 0, &t);
}
static long try_hostname(void)
{
	return sethostname("x", 1);
}
static long try_acct(void)
{
	return syscall(SYS_acct, "/tmp/x");
}
static long try_quota(void)
{
	return syscall(SYS_quotactl, 0x80000100, NULL, 0, NULL);
}
static long try_handle(void)
{
	struct {
		unsigned bytes;
		int type;
		char data[8];
	} h = { 8, 1, { 2 } };

	return syscall(SYS_open_by_handle_at, AT_FDCWD, &h, O_RDONLY);
}
static long try_syslog(void)
{
	return syscall(SYS_syslog, 3, scratch, 100);
}
static long try_fanotify(void)
{
	return syscall(SYS_fanotify_init, 0, 0);
}
static long try_iopl(void)
{
	return syscall(SYS_iopl, 3);
}
static long try_block_device(void)
{
	(void)unlink("/tmp/disk");
	if (mknod("/tmp/disk", S_IFBLK | 0600, makedev(254, 0)) < 0)
		return -1;
	return open("/tmp/disk", O_RDONLY | O_CLOEXEC);
}
static long try_kernel_memory_device(void)
{
	(void)unlink("/tmp/kmem");
	if (mknod("/tmp/kmem", S_IFCHR | 0600, makedev(1, 1)) < 0)
		return -1;
	return open("/tmp/kmem", O_RDONLY | O_CLOEXEC);
}
static long try_raw_socket(void)
{
	return socket(AF_INET, SOCK_RAW, 1);
}
static long try_packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0x0300);
}
static long try_vsock(void)
{
	return socket(AF_VSOCK_, SOCK_STREAM, 0);
}
static long try_alg(void)
{
	return socket(AF_ALG_, SOCK_SEQPACKET, 0);
}
static long try_nice(void)
{
	return syscall(SYS_setpriority, 0, 0, -20);
}
static long try_realtime(void)
{
	struct sched_param p = { 50 };

	return syscall(SYS_sched_setscheduler, 0, 1, &p);
}
static long try_kill_outside(void)
{
	/* Every pid that is not one of ours must not exist at all. */
	for (int pid = 2; pid < 40000; pid++) {
		char path[32];

		snprintf(path, sizeof(path), "/proc/%d", pid);
		if (kill(pid, 0) == 0 && access(path, F_OK) < 0)
			return 0;
	}
	errno = ESRCH;
	return -1;
}
static long try_tiocsti(void)
{
	return open("/dev/console", O_RDWR | O_CLOEXEC);
}
static long try_setcap(void)
{
	return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 21, 0, 0);
}
static long try_dumpable_core(void)
{
	return open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
}

static const struct {
	const char *name;
	long (*try)(void);
} tries[] = {
	{ "mount", try_mount },
	{ "bind", try_bind },
	{ "mount_proc", try_proc },
	{ "remount", try_remount },
	{ "umount", try_umount },
	{ "pivot_root", try_pivot },
	{ "open_tree", try_open_tree },
	{ "fsopen", try_fsopen },
	{ "unshare_user", try_unshare_user },
	{ "unshare_mount", try_unshare_mount },
	{ "unshare_pid", try_unshare_pid },
	{ "unshare_net", try_unshare_net },
	{ "clone_user", try_clone_user },
	{ "clone3_user", try_clone3_user },
	{ "setns", try_setns },
	{ "ptrace_init", try_ptrace_init },
	{ "read_init_memory", try_read_init_memory },
	{ "open_init_memory", try_open_init_memory },
	{ "open_init_fd", try_open_init_fd },
	{ "pidfd_getfd", try_pidfd_getfd },
	{ "init_environment", try_init_environment },
	{ "add_key", try_add_key },
	{ "keyctl", try_keyctl },
	{ "bpf", try_bpf },
	{ "perf_event_open", try_perf },
	{ "io_uring", try_io_uring },
	{ "userfaultfd", try_userfaultfd },
	{ "init_module", try_module },
	{ "kexec", try_kexec },
	{ "reboot", try_reboot },
	{ "swapon", try_swapon },
	{ "clock_settime", try_settime },
	{ "sethostname", try_hostname },
	{ "acct", try_acct },
	{ "quotactl", try_quota },
	{ "open_by_handle_at", try_handle },
	{ "syslog", try_syslog },
	{ "fanotify", try_fanotify },
	{ "iopl", try_iopl },
	{ "block_device", try_block_device },
	{ "kernel_memory_device", try_kernel_memory_device },
	{ "raw_socket", try_raw_socket },
	{ "packet_socket", try_packet_socket },
	{ "vsock", try_vsock },
	{ "alg_socket", try_alg },
	{ "nice", try_nice },
	{ "realtime", try_realtime },
	{ "kill_outside", try_kill_outside },
	{ "console", try_tiocsti },
	{ "raise_sys_admin", try_setcap },
	{ "core_pattern", try_dumpable_core },
};

/* Each in a child: a try that works may change the process. */
static void report(size_t i)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		long r = tries[i].try();

		printf("%s: %s\n", tries[i].name, r >= 0 ? "ok" : strerror(errno));
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	if (status != 0)
		printf("%s: died %d\n", tries[i].name, status);
}

static int eat(long megabytes)
{
	for (long i = 0; i < megabytes; i++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED) {
			printf("no more after %ld MB\n", i);
			return 1;
		}
		memset(p, 'x', 1 << 20);
	}
	puts("ate it all");
	return 0;
}

/* A child that is stopped because we trace it, and stays so. */
static int trace(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
			_exit(1);
		raise(SIGSTOP);
		for (;;)
			pause();
	}
	waitpid(pid, &status, 0);
	puts(WIFSTOPPED(status) ? "tracing" : "may not trace");
	fflush(stdout);
	for (;;)
		pause();
}

static int liar(const char *hex)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "/.berth/sock/init" };
	int s = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t len = 0;

	for (unsigned byte; sscanf(hex + 2 * len, "%2x", &byte) == 1; len++)
		scratch[len] = (char)byte;
	unlink(at.sun_path);
	if (bind(s, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(s, 64) < 0)
		return 1;
	if (fork() > 0)
		return 0;
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	for (int fd; (fd = accept(s, NULL, NULL)) >= 0;) {
		char asked[4096];

		(void)!read(fd, asked, sizeof(asked));
		(void)!write(fd, scratch, len); /* and never closes */
	}
	return 0;
}

/* All the terminals there are, and hold them for a while. */
static int terminals(long seconds)
{
	int n = 0;

	while (n < 10000 && open("/dev/ptmx", O_RDWR | O_NOCTTY) >= 0)
		n++;
	printf("%d\n", n);
	fflush(stdout);
	sleep((unsigned)seconds);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "terminals") == 0)
		return terminals(atol(argv[2]));
	if (argc == 2 && strcmp(argv[1], "trace") == 0)
		return trace();
	if (argc == 3 && strcmp(argv[1], "liar") == 0)
		return liar(argv[2]);
	if (argc == 3 && strcmp(argv[1], "eat") == 0)
		return eat(atol(argv[2]));
	if (argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		if (strcmp(argv[1], "all") == 0 || strcmp(argv[1], tries[i].name) == 0)
			report(i);
	return 0;
}

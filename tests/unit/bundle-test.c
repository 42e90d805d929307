#include "node/bundle.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/json.h"
#include "lib/str.h"
#include "node/seccomp.h"
#include "test.h"

static const char *const args[] = { "/.berth/init", "--fd", "3", NULL };

/* config.json of a sandbox with everything set, as a tree. */
static struct json *config(const char *socket_dir)
{
	struct strv env = { 0 };
	struct bundle b = {
		.name = "sb_c1_x.1",
		.hostname = "sandbox",
		.rootfs = "/mnt/rootfs",
		.cgroup = "/berth.main/sb_c1_x.1",
		.init = "/mnt/init",
		.socket_dir = socket_dir,
		.env = &env,
		.cwd = "/work \"dir\"",
		.args = args,
		.first_id = 1065536,
		.memory_bytes = 512 << 20,
		.socket_bytes = 128 << 20,
		.cpu_milli = 1500,
		.pids = 256,
		.open_files = 1024,
		.filter = "BwAAAA==",
	};
	struct buf out = buf_make(1 << 20);
	struct json *tree = NULL;
	struct err e = { 0 };

	strv_add(&env, "PATH=/bin");
	strv_add(&env, "ODD=\"\\\n");
	bundle_write(&out, &b);
	CHECK_OK(json_parse(buf_str(&out), out.len, &tree, &e), &e);
	strv_done(&env);
	buf_done(&out);
	return tree;
}

static const struct json *at(const struct json *tree, const char *a, const char *b)
{
	return json_get(json_get(tree, a), b);
}

static bool has(const struct json *list, const char *word)
{
	for (size_t i = 0; i < json_len(list); i++)
		if (strcmp(json_text(json_at(list, i)), word) == 0)
			return true;
	return false;
}

TEST(limits_reach_the_engine_as_they_were_asked)
{
	cleanup(json_free) struct json *tree = config(NULL);
	const struct json *resources = at(tree, "linux", "resources");

	CHECK_INT(json_get_int(json_get(resources, "memory"), "limit"), 512 << 20);
	CHECK_INT(json_get_int(json_get(resources, "memory"), "swap"), 512 << 20);
	CHECK_INT(json_get_int(json_get(resources, "memory"), "kernelTCP"), 128 << 20);
	CHECK_INT(json_get_int(json_get(resources, "pids"), "limit"), 256);
	CHECK_INT(json_get_int(json_get(resources, "cpu"), "quota"), 150000);
}

TEST(every_namespace_is_its_own_and_ids_are_mapped)
{
	static const char *const kinds[] = { "pid", "network", "ipc", "uts", "mount", "cgroup",
					     "user" };
	cleanup(json_free) struct json *tree = config(NULL);
	const struct json *linux_ = json_get(tree, "linux");
	const struct json *list = json_get(linux_, "namespaces");

	CHECK_INT(json_len(list), array_len(kinds));
	for (size_t i = 0; i < array_len(kinds); i++) {
		bool found = false;

		for (size_t k = 0; k < json_len(list); k++)
			found |= strcmp(json_get_str(json_at(list, k), "type"), kinds[i]) == 0;
		CHECK(found);
	}
	CHECK_INT(json_get_int(json_at(json_get(linux_, "uidMappings"), 0), "hostID"), 1065536);
	CHECK_INT(json_get_int(json_at(json_get(linux_, "gidMappings"), 0), "size"), 65536);
}

TEST(privileges_are_few_and_cannot_grow)
{
	static const char *const never[] = { "CAP_SYS_ADMIN", "CAP_SYS_PTRACE", "CAP_NET_ADMIN",
					     "CAP_NET_RAW", "CAP_SYS_MODULE", "CAP_MKNOD",
					     "CAP_BPF", "CAP_PERFMON", "CAP_DAC_READ_SEARCH" };
	cleanup(json_free) struct json *tree = config(NULL);
	const struct json *process = json_get(tree, "process");
	const struct json *caps = json_get(process, "capabilities");

	CHECK(json_get_bool(process, "noNewPrivileges"));
	for (size_t i = 0; i < array_len(never); i++) {
		CHECK(!has(json_get(caps, "bounding"), never[i]));
		CHECK(!has(json_get(caps, "permitted"), never[i]));
	}
	CHECK(json_get(caps, "ambient") == NULL);
}

TEST(the_way_out_through_proc_is_closed)
{
	cleanup(json_free) struct json *tree = config(NULL);

	CHECK(has(at(tree, "linux", "maskedPaths"), "/proc/kcore"));
	CHECK(has(at(tree, "linux", "maskedPaths"), "/sys/firmware"));
	CHECK(has(at(tree, "linux", "maskedPaths"), "/proc/fs"));
	CHECK(has(at(tree, "linux", "maskedPaths"), "/sys/devices/virtual/block"));
	CHECK(has(at(tree, "linux", "readonlyPaths"), "/proc/sys"));
	CHECK(has(at(tree, "linux", "readonlyPaths"), "/proc/sysrq-trigger"));
}

TEST(system_calls_are_an_allowlist)
{
	static const char *const never[] = { "mount", "umount2", "unshare", "setns", "bpf",
					     "keyctl", "add_key", "perf_event_open", "kexec_load",
					     "init_module", "userfaultfd", "io_uring_setup",
					     "open_by_handle_at", "pivot_root", "reboot", "socket",
					     "clone", "clone3", "move_mount", "fsopen", "ioctl" };
	cleanup(json_free) struct json *tree = config(NULL);
	const struct json *seccomp = at(tree, "linux", "seccomp");
	const struct json *allowed = json_get(json_at(json_get(seccomp, "syscalls"), 0), "names");

	CHECK_STR(json_get_str(seccomp, "defaultAction"), "SCMP_ACT_ERRNO");
	CHECK(has(allowed, "read"));
	for (size_t i = 0; i < array_len(never); i++)
		CHECK(!has(allowed, never[i])); /* some only by rules of their own */
}

/* The core limit: asked for as ever; set, whatever the higher bits, it stays, and nobody fails. */
static bool core_limit_stays(void)
{
	static const long names[] = { RLIMIT_CORE, RLIMIT_CORE | 1L << 32, RLIMIT_CORE | 1L << 63 };
	struct rlimit before, now = { 0 }, none = { 0, 0 }, files;

	if (getrlimit(RLIMIT_CORE, &before) < 0)
		return false;
	for (size_t i = 0; i < array_len(names); i++)
		if (syscall(SYS_prlimit64, 0, names[i], &none, NULL) != 0 ||
		    syscall(SYS_setrlimit, names[i], &none) != 0)
			return false;
	if (getrlimit(RLIMIT_CORE, &now) < 0 || now.rlim_cur != before.rlim_cur)
		return false;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return false;
	files.rlim_cur = 17;
	return setrlimit(RLIMIT_NOFILE, &files) == 0 && getrlimit(RLIMIT_NOFILE, &files) == 0 &&
	       files.rlim_cur == 17 && syscall(SYS_setrlimit, RLIMIT_NOFILE, &files) == 0;
}

/* Programs for packets and calls are refused, and what a kernel without them would say is told. */
static bool takes_no_programs(const struct sock_fprog *program)
{
	static const int programs[] = { SO_ATTACH_FILTER, SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF,
					SO_ATTACH_REUSEPORT_EBPF };

	for (size_t i = 0; i < array_len(programs); i++)
		if (setsockopt(-1, SOL_SOCKET, programs[i], program, sizeof(*program)) != -1 ||
		    errno != EPERM)
			return false;
	if (syscall(SYS_prctl, PR_SET_SECCOMP | 1L << 32, SECCOMP_MODE_FILTER, program) != -1 ||
	    errno != EINVAL)
		return false;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) == -1 && errno == EINVAL &&
	       syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, program) == -1 && errno == ENOSYS;
}

/* An option that passes fails behind the filter; an action has its answer. */
static bool knows_the_ordinary(void)
{
	static const int options[] = { SO_REUSEADDR, SO_KEEPALIVE, SO_RCVBUF, SO_RCVTIMEO,
				       SO_LINGER, SO_PASSCRED };

	for (size_t i = 0; i < array_len(options); i++)
		if (setsockopt(-1, SOL_SOCKET, options[i], NULL, 0) != -1 || errno != EBADF)
			return false;
	return prctl(PR_SET_NAME, "x") == 0 && prctl(PR_GET_DUMPABLE) >= 0 &&
	       prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER;
}

/* In a child: what the kernel answers under the compiled filter; the first wrong one, or 0. */
static int tried_under(const struct buf *code)
{
	struct sock_fprog prog = { .len = (unsigned short)(code->len / sizeof(struct sock_filter)),
				   .filter = (struct sock_filter *)(void *)code->data };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return 1;
	if (syscall(SYS_getpid) <= 0)
		return 2;
	if (syscall(SYS_unshare, CLONE_NEWUTS) != -1 || errno != EPERM)
		return 3;
	if (syscall(SYS_socket, AF_PACKET, SOCK_RAW, 0) != -1 || errno != EPERM)
		return 4;
	if (syscall(SYS_clone, CLONE_NEWUSER, 0, 0, 0, 0) != -1 || errno != EPERM)
		return 5;
	if (syscall(SYS_clone3, NULL, 0) != -1 || errno != ENOSYS)
		return 6;
	/* A request that passes fails behind the filter: there is no such descriptor. */
	if (ioctl(-1, TCGETS, NULL) != -1 || errno != EBADF)
		return 7;
	if (ioctl(-1, BTRFS_IOC_SUBVOL_CREATE, NULL) != -1 || errno != EPERM)
		return 8;
	/* The kernel does not see the high half. */
	if (syscall(SYS_ioctl, -1, 1UL << 32 | BTRFS_IOC_SNAP_CREATE, 0) != -1 || errno != EPERM)
		return 9;
	if (syscall(SYS_ioctl, -1, 1UL << 32 | TCGETS, 0) != -1 || errno != EBADF)
		return 10;
	if (ioctl(-1, FS_IOC_SETFLAGS, NULL) != -1 || errno != EPERM)
		return 11;
	if (syscall(SYS_io_setup, 1, NULL) != -1 || errno != ENOSYS)
		return 13;
	if (!core_limit_stays())
		return 14;
	if (!takes_no_programs(&prog))
		return 15;
	if (!knows_the_ordinary())
		return 16;
	return syscall(SYS_socket, AF_UNIX, SOCK_STREAM, 0) < 0 ? 12 : 0;
}

TEST(the_list_is_compiled_once_and_means_the_same)
{
	cleanup(json_free) struct json *tree = config(NULL);
	cleanup(buf_done) struct buf text = buf_make(SECCOMP_TEXT_MAX), code = buf_make(65536);
	struct err e = { 0 };
	int status = -1;
	pid_t pid;

	CHECK_STR(json_get_str(json_get(tree, "annotations"), "run.oci.seccomp_bpf_data"),
		  "BwAAAA==");
	CHECK_OK(seccomp_compile(&text, &e), &e);
	CHECK_OK(base64_decode(buf_str(&text), &code, &e), &e);
	CHECK_INT(code.len % sizeof(struct sock_filter), 0);
	pid = fork();
	if (pid == 0) {
		struct rlimit core = { 1, 1 };

		_exit(setrlimit(RLIMIT_CORE, &core) < 0 ? 1 : tried_under(&code));
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

TEST(words_of_the_image_cannot_break_the_file)
{
	cleanup(json_free) struct json *tree = config("/mnt/sock");
	const struct json *process = json_get(tree, "process");

	CHECK_STR(json_get_str(process, "cwd"), "/work \"dir\"");
	CHECK_STR(json_text(json_at(json_get(process, "env"), 1)), "ODD=\"\\\n");
}

TEST(a_shared_socket_directory_only_where_the_engine_needs_it)
{
	cleanup(json_free) struct json *without = config(NULL), *with = config("/mnt/sock");

	CHECK_INT(json_len(json_get(with, "mounts")), json_len(json_get(without, "mounts")) + 1);
}

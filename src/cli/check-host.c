#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/check.h"
#include "cli/table.h"
#include "lib/file.h"
#include "lib/proc.h"
#include "lib/str.h"

#define PROC_MAX    (256UL * 1024)
#define HOST_FILES  (16ULL << 20) /* of all programs; one sandbox may open 4 million */
#define GIGABYTE    (1ULL << 30)
#define COPIES_PATH "/proc/sys/net/core/tstamp_allow_data"

/* The number a text begins with; what follows it in `*rest`. */
static unsigned number(const char *s, const char **rest)
{
	unsigned n = 0;

	for (; *s >= '0' && *s <= '9' && n < 100000; s++)
		n = n * 10 + (unsigned)(*s - '0');
	*rest = s;
	return n;
}

void check_kernel(const struct context *c, struct check *ret)
{
	struct utsname u;
	const char *rest;
	unsigned major, minor, version;

	(void)c;
	uname(&u);
	major = number(u.release, &rest);
	minor = number(*rest == '.' ? rest + 1 : rest, &rest);
	version = major * 1000 + minor;
	if (version < 5019)
		check_set(ret, CHECK_FAIL, "Use Linux 5.19 or newer; Debian 12 has 6.1.",
			  "Linux %s has no id-mapped btrfs mounts", u.release);
	else if (version < 6007)
		check_set(ret, CHECK_WARN, "Linux 6.7 has simple quotas, which are much cheaper.",
			  "Linux %s works; disk limits use the older, slower quotas", u.release);
	else
		check_set(ret, CHECK_OK, NULL, "Linux %s", u.release);
}

void check_cgroups(const struct context *c, struct check *ret)
{
	cleanup(buf_done) struct buf v2 = buf_make(4096);
	bool unified = access("/sys/fs/cgroup/cgroup.controllers", R_OK) == 0;
	bool hybrid = access("/sys/fs/cgroup/unified/cgroup.controllers", R_OK) == 0;
	struct err ignored;
	const char *list = unified ? "/sys/fs/cgroup/cgroup.controllers"
				   : "/sys/fs/cgroup/unified/cgroup.controllers";
	bool read = file_read(AT_FDCWD, list, &v2, &ignored) == 0;

	(void)c;
	if (read && v2.len && v2.data[v2.len - 1] == '\n')
		v2.data[--v2.len] = '\0';
	if (unified && strstr(buf_str(&v2), "memory") && strstr(buf_str(&v2), "pids") &&
	    strstr(buf_str(&v2), "cpu"))
		check_set(ret, CHECK_OK, NULL, "version 2: %s", buf_str(&v2));
	else if (unified)
		check_set(ret, CHECK_FAIL,
			  "memory, cpu and pids are needed; see the kernel's command line.",
			  "version 2, but only: %s", buf_str(&v2));
	else if (hybrid && v2.len)
		check_set(ret, CHECK_WARN,
			  "berth-node mounts version 2 for itself, in a private namespace.",
			  "hybrid, controllers on version 2: %s", buf_str(&v2));
	else if (access("/sys/fs/cgroup/memory", R_OK) == 0)
		check_set(ret, CHECK_WARN,
			  "Works. Boot with systemd.unified_cgroup_hierarchy=1 for version 2.",
			  "%s, controllers on version 1", hybrid ? "hybrid" : "version 1");
	else
		check_set(ret, CHECK_FAIL, "Mount them: systemd does it, or `mount -t cgroup2`.",
			  "no cgroup controllers are mounted on /sys/fs/cgroup");
}

void check_btrfs(const struct context *c, struct check *ret)
{
	cleanup(buf_done) struct buf list = buf_make(PROC_MAX);
	char module[300];
	struct utsname u;
	struct err ignored;

	(void)c;
	uname(&u);
	snprintf(module, sizeof(module), "/lib/modules/%s/kernel/fs/btrfs", u.release);
	if (file_read(AT_FDCWD, "/proc/filesystems", &list, &ignored) == 0 &&
	    strstr(buf_str(&list), "btrfs"))
		check_set(ret, CHECK_OK, NULL, "in the kernel");
	else if (access(module, F_OK) == 0)
		check_set(ret, CHECK_OK, NULL, "a module, loaded when it is needed");
	else
		check_set(ret, CHECK_FAIL, "Use a kernel with btrfs; Debian's has it.",
			  "this kernel has no btrfs, and the disk pool is one");
}

void check_userns(const struct context *c, struct check *ret)
{
	uint64_t most = 0;
	struct err e;

	(void)c;
	if (access("/proc/self/ns/user", F_OK) < 0)
		check_set(ret, CHECK_FAIL, "Use a kernel with user namespaces; Debian's has them.",
			  "this kernel has none");
	else if (file_read_u64(AT_FDCWD, "/proc/sys/user/max_user_namespaces", &most, &e) < 0)
		check_set(ret, CHECK_WARN, NULL, "their limit cannot be read");
	else if (most < 1000)
		check_set(ret, CHECK_FAIL, "sysctl user.max_user_namespaces=100000",
			  "only %llu may exist; each sandbox takes one", (unsigned long long)most);
	else
		check_set(ret, CHECK_OK, NULL, "up to %llu", (unsigned long long)most);
}

void check_seccomp(const struct context *c, struct check *ret)
{
	(void)c;
	if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 &&
	    access("/proc/sys/kernel/seccomp/actions_avail", F_OK) == 0)
		check_set(ret, CHECK_OK, NULL, "filters are there");
	else
		check_set(ret, CHECK_FAIL, "Use a kernel with CONFIG_SECCOMP_FILTER.",
			  "this kernel has no seccomp filters");
}

void check_cores(const struct context *c, struct check *ret)
{
	cleanup(buf_done) struct buf text = buf_make(PROC_MAX);
	const char *pattern = "";
	struct err e;

	(void)c;
	if (file_read(AT_FDCWD, "/proc/sys/kernel/core_pattern", &text, &e) == 0)
		pattern = buf_str(&text);
	if (pattern[0] == '|' || pattern[0] == '@')
		check_set(ret, CHECK_WARN,
			  "sysctl kernel.core_pattern=core, unless you need those of the host.",
			  "they go to a program of root's; those of sandboxes do not");
	else
		check_set(ret, CHECK_OK, NULL, "they go to files; sandboxes make none");
}

/* A setting of one network namespace is there in a new one; one of the host is not. */
static bool is_per_namespace(const char *path)
{
	int flags = geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER, status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(unshare(flags) == 0 && access(path, F_OK) == 0 ? 0 : 1);
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

void check_copies_of(uint64_t allowed, bool per_namespace, struct check *ret)
{
	if (allowed == 0)
		check_set(ret, CHECK_OK, NULL, "refused on this host");
	else if (per_namespace)
		check_set(ret, CHECK_OK, NULL, "refused in every sandbox");
	else
		check_set(ret, CHECK_WARN,
			  "net.core.tstamp_allow_data = 0 in a file in /etc/sysctl.d, and sysctl "
			  "--system; 'berth init' does both.",
			  "a guest may ask for copies of what it sent, which no limit counts");
}

void check_copies(const struct context *c, struct check *ret)
{
	uint64_t allowed;
	struct err e;

	(void)c;
	if (file_read_u64(AT_FDCWD, COPIES_PATH, &allowed, &e) < 0)
		check_set(ret, CHECK_WARN, NULL, "whether they are made cannot be read");
	else
		check_copies_of(allowed, is_per_namespace(COPIES_PATH), ret);
}

void check_files(const struct context *c, struct check *ret)
{
	uint64_t host = UINT64_MAX;
	struct rlimit files;
	struct err e;

	(void)c;
	if (file_read_u64(AT_FDCWD, "/proc/sys/fs/file-max", &host, &e) == 0 && host < HOST_FILES)
		check_set(ret, CHECK_WARN,
			  "sysctl fs.file-max=9223372036854775807, as systemd does at boot.",
			  "all programs together may open %llu, which one large sandbox can take",
			  (unsigned long long)host);
	else if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_max < PROC_FILES_WANTED)
		check_set(ret, CHECK_WARN, "Raise the hard limit (LimitNOFILE=, limits.conf).",
			  "at most %llu; a busy host wants %d, and a sandbox has no more than its "
			  "host's daemon",
			  (unsigned long long)files.rlim_max, PROC_FILES_WANTED);
	else
		check_set(ret, CHECK_OK, NULL, "up to %llu", (unsigned long long)files.rlim_max);
}

void check_memory(const struct context *c, struct check *ret)
{
	struct sysinfo info;
	char text[TABLE_SIZE_TEXT];
	uint64_t total;

	(void)c;
	sysinfo(&info);
	total = (uint64_t)info.totalram * info.mem_unit;
	table_size_text(total, text);
	if (total < GIGABYTE)
		check_set(ret, CHECK_WARN, "2 GiB is a sensible least.", "%s is little", text);
	else
		check_set(ret, CHECK_OK, NULL, "%s", text);
}

void check_disk(const struct context *c, struct check *ret)
{
	const char *at = access("/var/lib/berth", F_OK) == 0 ? "/var/lib/berth" : "/var/lib";
	struct statvfs st;
	char text[TABLE_SIZE_TEXT];
	uint64_t available;

	(void)c;
	if (statvfs(at, &st) < 0) {
		check_set(ret, CHECK_WARN, NULL, "%s cannot be looked at", at);
		return;
	}
	available = (uint64_t)st.f_bavail * st.f_frsize;
	table_size_text(available, text);
	if (available < 10 * GIGABYTE)
		check_set(ret, CHECK_WARN, "Give a smaller --pool-size, or a disk of its own.",
			  "%s free in %s; the pool is 20 GiB unless told", text, at);
	else
		check_set(ret, CHECK_OK, NULL, "%s free in %s", text, at);
}

/* A guest that owns the host's /dev/null has every program of the host in its hands. */
void check_devices(const struct context *c, struct check *ret)
{
	static const char *const names[] = { "/dev/null", "/dev/zero", "/dev/full",
					     "/dev/random", "/dev/urandom", "/dev/tty" };
	struct stat st;

	(void)c;
	check_set(ret, CHECK_OK, NULL, "root's, and open to all");
	for (size_t i = 0; i < array_len(names); i++) {
		unsigned mode;

		if (stat(names[i], &st) < 0 || !S_ISCHR(st.st_mode)) {
			check_set(ret, CHECK_FAIL, "It is made at boot: boot the host again.",
				  "%s is no device", names[i]);
			return;
		}
		mode = st.st_mode & 0777;
		if (st.st_uid != 0 || mode != 0666) {
			char fix[100];

			snprintf(fix, sizeof(fix), "chown root %s; chmod 666 %s", names[i],
				 names[i]);
			check_set(ret, st.st_uid == 0 ? CHECK_WARN : CHECK_FAIL, fix,
				  "%s is of user %u, with mode %04o", names[i],
				  (unsigned)st.st_uid, mode);
			return;
		}
	}
}

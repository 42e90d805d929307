/* Our ids and rights, and whether we can get more. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "probe/helper.h"
#include "probe/probe.h"

#define NOBODY         65534
#define FIRST_FREE_ID  65536 /* below are the host's own */
#define ALLOWED        0x800405fbULL
#define CAP_SYS_ADMIN_ 21
#define CAP_MAGIC      0x20080522
#define OWN_IDS        "the ids are of gVisor's own kernel"
#define OWN_RIGHTS     "the rights are within gVisor's own kernel"

static bool map_of(const char *text, uint64_t *inside, uint64_t *outside, uint64_t *count)
{
	unsigned long long i, o, n;

	if (sscanf(text, " %llu %llu %llu", &i, &o, &n) != 3)
		return false;
	*inside = i, *outside = o, *count = n;
	return true;
}

static long try_map(struct attempt *a)
{
	uint64_t inside, first, count, other, others;
	char text[128] = "";
	int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    !map_of(text, &inside, &first, &count))
		return -1;
	if (first < FIRST_FREE_ID)
		return probe_say(a, 0, "our ids begin at the host's %llu",
				 (unsigned long long)first);
	if (map_of(a->target->ids, &inside, &other, &others) && first < other + others &&
	    other < first + count)
		return probe_say(a, 0, "a neighbour has the ids from %llu, too",
				 (unsigned long long)other);
	return probe_say(a, probe_refused(EPERM), "%llu ids from %llu, and nobody else's",
			 (unsigned long long)count, (unsigned long long)first);
}

static long try_write_map(struct attempt *a)
{
	int fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);

	(void)a;
	return fd < 0 || write(fd, "0 0 1\n", 6) != 6 ? -1 : 0;
}

static long try_foreign_owner(struct attempt *a)
{
	int fd = open("/root/owned", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)a;
	return fd < 0 ? -1 : fchown(fd, 100000, 100000);
}

static uint64_t capabilities(const char *set)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t found = 0;

	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, set, strlen(set)) == 0)
			found = strtoull(line + strlen(set) + 1, NULL, 16);
	if (f)
		fclose(f);
	return found;
}

static long try_capabilities(struct attempt *a)
{
	static const char *const sets[] = { "CapEff", "CapPrm", "CapInh", "CapBnd", "CapAmb" };

	for (size_t i = 0; i < array_len(sets); i++)
		if (capabilities(sets[i]) & ~ALLOWED)
			return probe_say(a, 0, "%s is %llx", sets[i],
					 (unsigned long long)capabilities(sets[i]));
	return probe_say(a, probe_refused(EPERM), "none that matters outside");
}

static long set_capabilities(uint32_t effective, uint32_t permitted, uint32_t inheritable)
{
	struct {
		uint32_t version;
		int pid;
	} head = { CAP_MAGIC, 0 };
	uint32_t sets[6] = { effective, permitted, inheritable };

	return syscall(SYS_capset, &head, sets);
}

/* The kernel wants it permitted and inheritable first. */
static long try_ambient(struct attempt *a)
{
	const uint32_t admin = 1U << CAP_SYS_ADMIN_;
	long n = set_capabilities(admin, admin, admin);

	(void)a;
	return n < 0 ? n : prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN_, 0, 0);
}

static long try_capset(struct attempt *a)
{
	const uint32_t admin = 1U << CAP_SYS_ADMIN_;

	(void)a;
	return set_capabilities(admin, admin, 0);
}

/* A copy of ourselves with rights of its own, run as the user NOBODY: what is it then? */
static long run_copy(struct attempt *a, const char *path, const void *rights, size_t len,
		     mode_t mode)
{
	char text[32];
	int status = 0;
	pid_t pid;

	if (copy_self(path) < 0)
		return probe_say(a, PROBE_UNKNOWN, "could not be tried: %s", strerror(errno));
	if (rights && setxattr(path, "security.capability", rights, len, 0) < 0)
		return -1;
	if (chmod(path, mode) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (setgroups(0, NULL) < 0 || setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
			_exit(2);
		snprintf(text, sizeof(text), "%d", NOBODY);
		execl(path, path, "rights", text, NULL);
		_exit(2);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFEXITED(status) ||
	    WEXITSTATUS(status) > 1)
		return probe_say(a, PROBE_UNKNOWN, "could not be tried");
	if (WEXITSTATUS(status) == 1)
		return probe_say(a, 0, "it has more rights than who ran it");
	return probe_say(a, probe_refused(EPERM), "it has no more rights than who ran it");
}

static long try_setuid(struct attempt *a)
{
	return run_copy(a, "/tmp/setuid", NULL, 0, 06755);
}

static long try_file_rights(struct attempt *a)
{
	/* Version 2, effective: all that the box's root has. */
	static const uint32_t rights[] = { 0x02000001, 0xfb, 0, 0, 0 };

	return run_copy(a, "/tmp/file-rights", rights, sizeof(rights), 0755);
}

static long try_trusted(struct attempt *a)
{
	int fd = open("/tmp/trusted", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	(void)a;
	return fd < 0 ? -1 : fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0);
}

static long raise_limit(int which)
{
	struct rlimit l;

	if (getrlimit(which, &l) < 0)
		return -1;
	if (l.rlim_max == RLIM_INFINITY)
		return 0;
	l.rlim_max += 1;
	return setrlimit(which, &l);
}

static long try_files_limit(struct attempt *a)
{
	(void)a;
	return raise_limit(RLIMIT_NOFILE);
}

/* Which the filter tells as done: what counts is what it is then. */
static long try_core_limit(struct attempt *a)
{
	static const long names[] = { RLIMIT_CORE, RLIMIT_CORE | 1L << 32 };
	static const struct rlimit tries[] = { { 0, 0 }, { 2, 2 }, { 0, 1 } };
	struct rlimit now = { 0 };

	for (size_t i = 0; i < array_len(names); i++)
		for (size_t k = 0; k < array_len(tries); k++) {
			(void)syscall(SYS_prlimit64, 0, names[i], &tries[k], NULL);
			(void)syscall(SYS_setrlimit, names[i], &tries[k]);
			if (getrlimit(RLIMIT_CORE, &now) < 0)
				return -1;
			if (now.rlim_cur != 1)
				return probe_say(a, 0, "it is %llu: a pipe gets the dump",
						 (unsigned long long)now.rlim_cur);
		}
	return probe_say(a, probe_refused(EPERM), "it stays 1, for which nothing is piped");
}

/* What it has is set again, so nothing changes where it gets through. */
static long try_init_limit(struct attempt *a)
{
	static const long pids[] = { 1, 1 | 1L << 32 };
	struct rlimit l;

	if (prlimit(1, RLIMIT_NOFILE, NULL, &l) < 0)
		return -1;
	for (size_t i = 0; i < array_len(pids); i++)
		if (syscall(SYS_prlimit64, pids[i], RLIMIT_NOFILE, &l, NULL) == 0)
			return probe_say(a, 0, "init's limit of open files was set");
	return -1;
}

/* clang-format off */
const struct probe probe_ids[] = {
	{ "id-range", "root inside is root outside; two boxes with the same ids",
	  "read /proc/self/uid_map", try_map, JUDGE_ANY, OWN_IDS },
	{ "id-map", "other ids", "write /proc/self/uid_map", try_write_map, JUDGE_ANY, OWN_IDS },
	{ "foreign-owner", "files of an id outside the range", "chown a file to 100000",
	  try_foreign_owner },
	{ "capabilities", "rights that matter outside", "look at all sets of capabilities",
	  try_capabilities },
	{ "ambient", "rights that matter outside", "raise CAP_SYS_ADMIN", try_ambient, JUDGE_ANY,
	  OWN_RIGHTS },
	{ "capset", "rights that matter outside", "take CAP_SYS_ADMIN", try_capset, JUDGE_ANY,
	  OWN_RIGHTS },
	{ "setuid", "setuid files", "run a set-user-id program of root's as nobody", try_setuid,
	  JUDGE_ANY, OWN_RIGHTS },
	{ "file-rights", "files with capabilities", "run a program with capabilities as nobody",
	  try_file_rights, JUDGE_ANY, OWN_RIGHTS },
	{ "trusted-attribute", "CVE-2021-3493", "set a trusted attribute", try_trusted },
	{ "files-limit", "one's own limit", "raise RLIMIT_NOFILE", try_files_limit, JUDGE_ANY,
	  "the host's limit is that of gVisor's processes" },
	{ "init-limit", "an init that cannot look says that nothing is left",
	  "set RLIMIT_NOFILE of pid 1", try_init_limit, JUDGE_ANY,
	  "what is left is not told as known on gVisor" },
	{ "core-limit", "a core_pattern that is a pipe runs as the host's root: CVE-2025-4598",
	  "set RLIMIT_CORE, by both calls and with high bits", try_core_limit, JUDGE_ANY,
	  "gVisor makes no dumps on the host" },
	{ NULL },
};
/* clang-format on */

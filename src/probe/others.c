/* The host and the neighbour: their processes, files, memory and sockets. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <mqueue.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "probe/helper.h"
#include "probe/probe.h"

#define WALK_FILES 64
#define UP         "../../../../../../../../../../.."

static long try_leak(struct attempt *a)
{
	char path[64], to[128] = "";

	if (!a->target->leaked)
		return probe_say(a, probe_refused(EBADF), "there is none");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->target->leaked);
	(void)!readlink(path, to, sizeof(to) - 1);
	return probe_say(a, 0, "%d is open: %.100s", a->target->leaked, to);
}

static long found_at(struct attempt *a, const char *path)
{
	return file_has(path, a->target->token) ? probe_say(a, 0, "%.150s", path) : -1;
}

/* Every descriptor, root and working directory that can be named: does one lead up and out? */
static long try_climb(struct attempt *a)
{
	static const char *const kinds[] = { "root", "cwd" };
	char path[512];

	for (int pid = 1; pid < 64; pid++) {
		for (size_t i = 0; i < array_len(kinds); i++) {
			snprintf(path, sizeof(path), "/proc/%d/%s/" UP "%s", pid, kinds[i],
				 a->target->file);
			if (found_at(a, path) >= 0)
				return 0;
		}
		for (int fd = 0; fd < 32; fd++) {
			snprintf(path, sizeof(path), "/proc/%d/fd/%d/" UP "%s", pid, fd,
				 a->target->file);
			if (found_at(a, path) >= 0)
				return 0;
		}
	}
	return probe_say(a, probe_refused(ENOENT), "none does");
}

static long try_file(struct attempt *a)
{
	return found_at(a, a->target->file) >= 0 ? 0 : probe_refused(ENOENT);
}

static long try_shared_file(struct attempt *a)
{
	if (file_has("/etc/shared", a->target->token))
		return probe_say(a, 0, "the neighbour's words are in it");
	return probe_say(a, probe_refused(ENOENT), "it is as in the image");
}

/* The pid is of a process in our box; else it can only be one outside. */
static bool is_ours(int pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) == 0;
}

static long try_signal(struct attempt *a)
{
	int pid = a->target->pid;

	if (pid > 1 && !is_ours(pid) && kill(pid, 0) == 0)
		return 0;
	for (pid = 2; pid < 65536; pid++)
		if (kill(pid, 0) == 0 && !is_ours(pid) && kill(pid, 0) == 0)
			return probe_say(a, 0, "%d can be signalled", pid);
	return probe_refused(ESRCH);
}

static long try_trace(struct attempt *a)
{
	int pid = a->target->pid;

	return pid > 1 && !is_ours(pid) ? ptrace(PTRACE_SEIZE, pid, 0, 0) : probe_refused(ESRCH);
}

/* What every visible process was started with. */
static long look_at_processes(struct attempt *a, const char *file, const char *word)
{
	DIR *dir = opendir("/proc");
	const struct dirent *d;
	char path[300];

	if (!dir)
		return -1;
	while ((d = readdir(dir))) {
		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/%s", d->d_name, file);
		if (file_has(path, word))
			return probe_say(a, 0, "%s has \"%s\"", path, word);
	}
	return probe_say(a, probe_refused(ESRCH), "none has it");
}

static long try_processes(struct attempt *a)
{
	return look_at_processes(a, "cmdline", "neighbour");
}

static long try_environments(struct attempt *a)
{
	return look_at_processes(a, "environ", "BERTH_");
}

static long try_shared_memory(struct attempt *a)
{
	(void)a;
	return a->target->key ? shmget(a->target->key, 0, 0) : probe_refused(ENOENT);
}

static long try_queue(struct attempt *a)
{
	return a->target->key ? msgget(a->target->key, 0) : probe_refused(ENOENT);
}

static long try_posix_memory(struct attempt *a)
{
	char name[PROBE_TEXT_SIZE + 1];

	snprintf(name, sizeof(name), "/%s", a->target->token);
	return shm_open(name, O_RDONLY, 0);
}

static long try_posix_queue(struct attempt *a)
{
	char name[PROBE_TEXT_SIZE + 1];

	snprintf(name, sizeof(name), "/%s", a->target->token);
	return mq_open(name, O_RDONLY);
}

static long try_abstract(struct attempt *a)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "%s", a->target->token);

	if (s < 0 || n <= 0)
		return -1;
	return connect(s, (struct sockaddr *)&name,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

static long try_socket_names(struct attempt *a)
{
	static const char *const words[] = { "PGSQL", "node.sock", "containerd", "docker", "dbus",
					     "systemd" };

	for (size_t i = 0; i < array_len(words); i++)
		if (file_has("/proc/net/unix", words[i]))
			return probe_say(a, 0, "%s is in /proc/net/unix", words[i]);
	if (file_has("/proc/net/unix", a->target->token))
		return probe_say(a, 0, "the host's are in /proc/net/unix");
	return probe_say(a, probe_refused(ENOENT), "none of the host's is named");
}

/* nftw() has no argument for its caller. */
static char walk_found[PROBE_TEXT_SIZE];

static int look_socket(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)type, (void)at;
	if (!S_ISSOCK(st->st_mode) || strcmp(path, "/.berth/sock/init") == 0)
		return strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 ? 2 : 0;
	snprintf(walk_found, sizeof(walk_found), "%s", path);
	return 1;
}

static long try_control_sockets(struct attempt *a)
{
	DIR *root = opendir("/");
	const struct dirent *d;
	char path[300];

	if (!root)
		return -1;
	while ((d = readdir(root)) && !walk_found[0]) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof(path), "/%s", d->d_name);
		nftw(path, look_socket, WALK_FILES, FTW_PHYS);
	}
	if (walk_found[0])
		return probe_say(a, 0, "%s is there", walk_found);
	return probe_say(a, probe_refused(ENOENT), "there is none");
}

static long try_host_name(struct attempt *a)
{
	struct utsname u;

	if (uname(&u) == 0 && a->target->name[0] && strcmp(u.nodename, a->target->name) == 0)
		return probe_say(a, 0, "it is the host's, %s", u.nodename);
	return probe_say(a, probe_refused(EPERM), "it is our own");
}

static long try_cgroup_path(struct attempt *a)
{
	if (file_has("/proc/self/cgroup", "berth.") || file_has("/proc/1/cgroup", "berth."))
		return probe_say(a, 0, "the host's path is shown");
	return probe_say(a, probe_refused(EPERM), "it begins at the box");
}

/* clang-format off */
const struct probe probe_others[] = {
	{ "leaked-descriptor", "CVE-2024-21626, CVE-2016-9962",
	  "look for open descriptors besides 0, 1 and 2", try_leak },
	{ "climb", "CVE-2024-21626", "up and out from every descriptor and directory in /proc",
	  try_climb },
	{ "host-file", "files of the host", "read one that everybody there may read", try_file },
	{ "shared-file", "files and page cache of a neighbour",
	  "read a file of the image that it has written to", try_shared_file },
	{ "signal", "signals outward", "signal every pid that is none of ours", try_signal },
	{ "trace", "tracing outward", "ptrace() a process of the host", try_trace, JUDGE_ANY },
	{ "processes", "processes of others", "find the neighbour's in /proc", try_processes },
	{ "environments", "secrets of the host", "look for Berth's in every environment",
	  try_environments },
	{ "sysv-memory", "shared memory of others", "shmget() the host's and the neighbour's",
	  try_shared_memory },
	{ "sysv-queue", "queues of others", "msgget() the host's", try_queue },
	{ "posix-memory", "shared memory of others", "shm_open() the host's", try_posix_memory },
	{ "posix-queue", "queues of others", "mq_open() the host's", try_posix_queue },
	{ "abstract-socket", "CVE-2020-15257",
	  "connect to an abstract socket of the host and the neighbour", try_abstract },
	{ "socket-names", "sockets of the host", "read /proc/net/unix", try_socket_names },
	{ "control-sockets", "the control sockets", "find a socket in the file system",
	  try_control_sockets },
	{ "host-name", "names of the host", "read the host name", try_host_name },
	{ "cgroup-path", "names of the host", "read /proc/self/cgroup", try_cgroup_path },
	{ NULL },
};
/* clang-format on */

#include "init/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "init/user.h"
#include "lib/file.h"

#define CGROUPS       "/sys/fs/cgroup"
#define CGROUP_ROOT   CGROUPS "/cpu"
#define PREFIX        "berth-exec-"
#define PROCS_MAX     (1UL << 20)
#define ROUNDS_MAX    32
#define CAP_SYS_ADMIN 21 /* to mount; the number is the kernel's */

/* Where gVisor shows what pid 1 has open. */
static const char *const covered[] = { "/proc/1/fd", "/proc/1/task/1/fd" };

static int hide(struct err *e)
{
	if (chdir(CGROUP_ROOT) < 0 || umount2(CGROUPS, MNT_DETACH) < 0)
		return err_sys(e, errno, "detach " CGROUPS);
	for (size_t i = 0; i < array_len(covered); i++)
		if (mount("none", covered[i], "tmpfs", MS_RDONLY, "mode=0500") < 0)
			return err_sys(e, errno, "cover %s", covered[i]);
	return 0;
}

int cgroups_hide(bool *ret, struct err *e)
{
	bool there = access(CGROUP_ROOT "/cgroup.procs", W_OK) == 0;

	if (there && hide(e) < 0)
		return -1;
	if (user_drop_power(CAP_SYS_ADMIN) < 0)
		return err_sys(e, errno, "give up the power to mount");
	*ret = there;
	return 0;
}

/* --- by name, below the working directory --- */

/* The number at *at, which then stands behind it; 0: there is none. */
static uint32_t take_number(const char **at)
{
	uint32_t n = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		n = n * 10 + (uint32_t)(**at - '0');
	return n;
}

static bool id_of(const char *name, struct cgroup_id *ret)
{
	const char *at = name + strlen(PREFIX);

	if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
		return false;
	ret->owner = take_number(&at);
	if (*at++ != '.')
		return false;
	ret->number = take_number(&at);
	return ret->number > 0 && *at == '\0';
}

static void procs_of(struct cgroup_id id, char path[64])
{
	snprintf(path, 64, PREFIX "%u.%u/cgroup.procs", id.owner, id.number);
}

static void dir_of(struct cgroup_id id, char path[64])
{
	snprintf(path, 64, PREFIX "%u.%u", id.owner, id.number);
}

int cgroup_make(struct cgroup_id id)
{
	char path[64];

	dir_of(id, path);
	return mkdir(path, 0700);
}

int cgroup_add(struct cgroup_id id, pid_t pid)
{
	cleanup(close_fd) int fd = -1;
	char path[64], text[16];
	int n = snprintf(text, sizeof(text), "%d", pid);

	procs_of(id, path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -1;
}

static int read_procs(struct cgroup_id id, struct buf *ret)
{
	cleanup(close_fd) int fd = -1;
	char path[64], chunk[4096];
	ssize_t n;

	procs_of(id, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(ret, chunk, (size_t)n);
	return n < 0 || buf_overflowed(ret) ? -1 : 0;
}

static int signal_one(struct cgroup_id id, int signum, uint32_t *ret)
{
	cleanup(buf_done) struct buf text = buf_make(PROCS_MAX);
	const char *at;

	if (read_procs(id, &text) < 0)
		return -1;
	for (at = buf_str(&text); *at; at += strspn(at, "\n")) {
		uint32_t pid = take_number(&at);

		if (pid <= 1) /* nothing that could be signalled */
			return -1;
		(void)kill((pid_t)pid, signum); /* it may just have ended */
		++*ret;
	}
	return 0;
}

static int signal_all_of(uint32_t owner, int signum, uint32_t *ret)
{
	cleanup(dir_closep) DIR *d = opendir(".");
	const struct dirent *ent;
	struct cgroup_id id;
	int n = d ? 0 : -1;

	while (d && (ent = readdir(d)))
		if (id_of(ent->d_name, &id) && id.owner == owner && signal_one(id, signum, ret) < 0)
			n = -1;
	return n;
}

int cgroup_signal(struct cgroup_id id, int signum, uint32_t *ret)
{
	uint32_t count = 0;
	int n;

	if (id.number)
		n = signal_one(id, signum, &count);
	else
		n = signal_all_of(id.owner, signum, &count);
	if (n == 0)
		*ret = count;
	return n;
}

/* One more than were seen, if not all could be. */
static size_t signal_ownerless(bool (*has_owner)(const void *data, struct cgroup_id id),
			       const void *data, int signum)
{
	cleanup(dir_closep) DIR *d = opendir(".");
	const struct dirent *ent;
	struct cgroup_id id;
	size_t seen = d ? 0 : 1;

	while (d && (ent = readdir(d))) {
		uint32_t count = 0;

		if (!id_of(ent->d_name, &id) || has_owner(data, id))
			continue;
		if (signal_one(id, signum, &count) < 0)
			count++;
		seen += count;
	}
	return seen;
}

size_t cgroups_kill(bool (*has_owner)(const void *data, struct cgroup_id id), const void *data)
{
	size_t before = 0, seen = signal_ownerless(has_owner, data, SIGSTOP);

	for (int round = 0; seen > before && round < ROUNDS_MAX; round++) {
		before = seen;
		seen = signal_ownerless(has_owner, data, SIGSTOP);
	}
	return seen ? signal_ownerless(has_owner, data, SIGKILL) : 0;
}

void cgroups_sweep(bool (*in_use)(const void *data, struct cgroup_id id), const void *data)
{
	cleanup(dir_closep) DIR *d = opendir(".");
	const struct dirent *ent;
	struct cgroup_id id;

	while (d && (ent = readdir(d)))
		if (id_of(ent->d_name, &id) && !in_use(data, id))
			(void)rmdir(ent->d_name); /* refused while it has members */
}

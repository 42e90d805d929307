#include "node/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"
#include "node/presence.h"

#define CGROUP_ROOT "/sys/fs/cgroup"
#define V2_MAGIC    0x63677270
#define PROCS_MAX   (1024 * 1024) /* SANDBOX_PIDS_MAX lines of 8 */
#define FILE_MAX    (16 * 1024)
#define SOCKET_PART 4 /* of the memory */

static const char *const mode_names[CGROUP_MODE_COUNT] = {
	[CGROUP_V1] = "v1",
	[CGROUP_HYBRID] = "hybrid",
	[CGROUP_V2] = "v2",
};

const char *cgroup_mode_name(enum cgroup_mode mode)
{
	return mode_names[mode];
}

/* One mount may be of several: "cpu,cpuacct". */
int cgroup_tree(const struct cgroup_host *h, const char *controller)
{
	size_t len = strlen(controller);

	for (size_t i = 0; i < h->tree_count; i++)
		for (const char *at = h->names[i]; *at; at += strspn(at, ",")) {
			size_t word = strcspn(at, ",");

			if (word == len && memcmp(at, controller, len) == 0)
				return h->trees[i];
			at += word;
		}
	return -1;
}

static bool is_v2(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == V2_MAGIC;
}

static int tree_add(struct cgroup_host *h, const char *name, int fd, struct err *e)
{
	if (h->tree_count == CGROUP_TREES_MAX || !str_copy(h->names[h->tree_count], 24, name)) {
		close(fd);
		return err_set(e, ERR_LIMIT, "more cgroup hierarchies than %d", CGROUP_TREES_MAX);
	}
	h->trees[h->tree_count++] = fd;
	return 0;
}

static int tree_open(struct cgroup_host *h, const char *name, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, errno, "open %s", path);
	return tree_add(h, name, fd, e);
}

/* Give one controller a v1 mount of its own in our mount namespace, unless it has one. */
static int mount_v1(const char *controller, struct err *e)
{
	char path[96], procs[128];

	snprintf(path, sizeof(path), CGROUP_ROOT "/%.40s", controller);
	snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	if (access(procs, F_OK) == 0)
		return 0;
	if (mkdir(path, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make %s", path);
	if (mount("cgroup", path, "cgroup", MS_NOSUID | MS_NODEV | MS_NOEXEC, controller) < 0)
		return err_sys(e, errno, "mount the v1 %s controller", controller);
	return 0;
}

/* True if the list "a b c\n" has the word. */
static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at++)
		if ((at == list || at[-1] == ' ') && strchr(" \n", at[len]))
			return true;
	return false;
}

/*
 * A controller is in the way if it is on the v2 tree, or if another process's
 * mount keeps it off it only for as long as that process lives.
 */
static int clear_v2(struct err *e)
{
	cleanup(buf_done) struct buf v2 = buf_make(FILE_MAX), all = buf_make(FILE_MAX);
	char *line, *save = NULL;

	if (file_read(AT_FDCWD, CGROUP_ROOT "/unified/cgroup.controllers", &v2, e) < 0 ||
	    file_read(AT_FDCWD, "/proc/cgroups", &all, e) < 0)
		return -1;
	for (line = strtok_r(all.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		size_t len = strcspn(line, "\t");
		bool elsewhere = line[len] && line[len + 1] != '0'; /* its hierarchy's number */

		line[len] = '\0';
		if (line[0] == '#' || !(elsewhere || has_word(buf_str(&v2), line)))
			continue;
		if (mount_v1(line, e) < 0)
			return -1;
	}
	return 0;
}

/* Every mount point directly below the root is one hierarchy. */
static int open_v1(struct cgroup_host *h, struct err *e)
{
	cleanup(dir_closep) DIR *dir = opendir(CGROUP_ROOT);
	struct dirent *entry;

	if (!dir)
		return err_sys(e, errno, "open " CGROUP_ROOT);
	while ((entry = readdir(dir))) {
		char path[PATH_MAX];

		if (entry->d_name[0] == '.' || entry->d_type == DT_LNK)
			continue;
		snprintf(path, sizeof(path), CGROUP_ROOT "/%s/cgroup.procs", entry->d_name);
		if (access(path, F_OK) < 0)
			continue;
		snprintf(path, sizeof(path), CGROUP_ROOT "/%s", entry->d_name);
		if (tree_open(h, entry->d_name, path, e) < 0)
			return -1;
	}
	if (h->tree_count == 0) {
		err_set(e, ERR_UNSUPPORTED, "no cgroup hierarchy below " CGROUP_ROOT);
		return err_fix(e, "Mount the cgroup hierarchies there; 'berth doctor' says more.");
	}
	return 0;
}

int cgroup_open(struct cgroup_host *h, const char *instance, struct err *e)
{
	int n = snprintf(h->parent, sizeof(h->parent), "berth.%s", instance);

	if (n < 0 || (size_t)n >= sizeof(h->parent))
		return err_set(e, ERR_INVALID, "instance name too long: %.40s", instance);
	if (is_v2(CGROUP_ROOT)) {
		h->mode = CGROUP_V2;
		return tree_open(h, "v2", CGROUP_ROOT, e);
	}
	h->mode = is_v2(CGROUP_ROOT "/unified") ? CGROUP_HYBRID : CGROUP_V1;
	if (h->mode == CGROUP_HYBRID && clear_v2(e) < 0)
		return -1;
	return open_v1(h, e);
}

void cgroup_close(struct cgroup_host *h)
{
	for (size_t i = 0; i < h->tree_count; i++) {
		(void)unlinkat(h->trees[i], h->parent, AT_REMOVEDIR); /* busy: sandboxes live on */
		close(h->trees[i]);
	}
	h->tree_count = 0;
}

bool cgroup_path(const struct cgroup_host *h, const char *name, char *out, size_t size)
{
	int n = snprintf(out, size, "/%s/%s", h->parent, name);

	return n > 0 && (size_t)n < size;
}

uint64_t cgroup_socket_bytes(const struct cgroup_host *h, uint64_t memory_bytes)
{
	int tree = h->mode == CGROUP_V2 ? -1 : cgroup_tree(h, "memory");

	return tree < 0 || faccessat(tree, CGROUP_SOCKETS, F_OK, 0) < 0
		       ? 0
		       : memory_bytes / SOCKET_PART;
}

const char *cgroup_file(const struct cgroup_host *h, const char *name, const char *file, char *out,
			size_t size)
{
	snprintf(out, size, "%s/%s%s%s", h->parent, name, file ? "/" : "", file ? file : "");
	return out;
}

static enum presence procs_presence(int tree, const char *path)
{
	cleanup(buf_done) struct buf text = buf_make(PROCS_MAX);
	struct err e;

	if (file_read(tree, path, &text, &e) == 0)
		return text.len > 0 ? PRESENCE_PRESENT : PRESENCE_ABSENT;
	return e.code == ERR_NOT_FOUND ? PRESENCE_ABSENT : PRESENCE_UNKNOWN;
}

/* Where no limit is set by it: the v2 tree, or one that only counts processes. */
static int plain_tree(const struct cgroup_host *h, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (cgroup_tree(h, names[i]) >= 0)
			return cgroup_tree(h, names[i]);
	return -1;
}

/* Of those, one the engine makes the sandbox's group on. */
int cgroup_inner_tree(const struct cgroup_host *h)
{
	static const char *const names[] = { "v2", "unified", "freezer", "pids" };

	return plain_tree(h, names, array_len(names));
}

int cgroup_each_inner(const struct cgroup_host *h, const char *name,
		      void (*fn)(void *arg, const char *inner), void *arg)
{
	char path[256];
	int fd = openat(cgroup_inner_tree(h), cgroup_file(h, name, NULL, path, sizeof(path)),
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	if (fd < 0)
		return errno == ENOENT || cgroup_inner_tree(h) < 0 ? 0 : -1;
	if (!dir) {
		close(fd);
		return -1;
	}
	while ((entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
			fn(arg, entry->d_name);
	return 0;
}

enum presence cgroup_procs(const struct cgroup_host *h, const char *name)
{
	char path[256];

	cgroup_file(h, name, "cgroup.procs", path, sizeof(path));
	return procs_presence(cgroup_inner_tree(h), path);
}

/*
 * A sandbox has two: its own, made by the engine with its limits, and one the
 * engine itself is started in. A child of the engine is in the second until it
 * is moved to the first, so there is no moment in which we could not find it.
 */
static const char *const suffixes[] = { "", ".launch" };
#define GROUP_NAME_SIZE 160

static const char *group_name(const char *name, size_t i, char out[GROUP_NAME_SIZE])
{
	snprintf(out, GROUP_NAME_SIZE, "%s%s", name, suffixes[i]);
	return out;
}

static void observe_one(const struct cgroup_host *h, const char *name, enum presence *group,
			enum presence *process)
{
	char path[256];

	for (size_t i = 0; i < h->tree_count; i++) {
		int tree = h->trees[i];

		cgroup_file(h, name, NULL, path, sizeof(path));
		*group = presence_sum(*group, presence_at(tree, path));
		cgroup_file(h, name, "cgroup.procs", path, sizeof(path));
		*process = presence_sum(*process, procs_presence(tree, path));
	}
}

struct inner_look {
	const struct cgroup_host *host;
	const char *name;
	enum presence process;
};

static void observe_inner(void *arg, const char *inner)
{
	struct inner_look *l = arg;
	char both[GROUP_NAME_SIZE + 64];

	snprintf(both, sizeof(both), "%s/%s", l->name, inner);
	l->process = presence_sum(l->process, cgroup_procs(l->host, both));
}

void cgroup_observe(const struct cgroup_host *h, const char *name, enum presence *group,
		    enum presence *process)
{
	struct inner_look l = { h, name, PRESENCE_ABSENT };
	char one[GROUP_NAME_SIZE];

	*group = *process = PRESENCE_ABSENT;
	for (size_t i = 0; i < array_len(suffixes); i++)
		observe_one(h, group_name(name, i, one), group, process);
	if (cgroup_each_inner(h, name, observe_inner, &l) < 0)
		l.process = presence_sum(l.process, PRESENCE_UNKNOWN);
	*process = presence_sum(*process, l.process);
}

bool cgroup_holds(const struct cgroup_host *h, const char *name, int pid)
{
	cleanup(buf_done) struct buf text = buf_make(FILE_MAX);
	char path[64], wanted[256];
	const char *at;
	struct err e;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	if (!cgroup_path(h, name, wanted, sizeof(wanted)) ||
	    file_read(AT_FDCWD, path, &text, &e) < 0)
		return false;
	for (at = text.data; (at = strstr(at, wanted)); at++) {
		char after = at[strlen(wanted)];

		if (at[-1] == ':' && (after == '\n' || after == '/' || after == '\0'))
			return true;
	}
	return false;
}

/* The pid may be another's by now: hold it by pidfd, look again, then kill. */
static void kill_if_inside(const struct cgroup_host *h, const char *name, int pid)
{
	cleanup(close_fd) int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (pidfd >= 0 && cgroup_holds(h, name, pid))
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
}

static void kill_listed(const struct cgroup_host *h, const char *name, int tree)
{
	cleanup(buf_done) struct buf text = buf_make(PROCS_MAX);
	char path[256], *save = NULL;
	uint64_t pid;
	struct err e;

	cgroup_file(h, name, "cgroup.procs", path, sizeof(path));
	if (file_read(tree, path, &text, &e) < 0 || text.len == 0)
		return;
	for (char *word = strtok_r(text.data, "\n", &save); word;
	     word = strtok_r(NULL, "\n", &save))
		if (str_u64(word, &pid, &e) == 0 && pid > 0)
			kill_if_inside(h, name, (int)pid);
}

/* A v2 tree kills all of it at once; elsewhere those that are listed, until none is. */
static void kill_in(const struct cgroup_host *h, const char *name, int tree)
{
	char path[256];
	struct err e;

	cgroup_file(h, name, "cgroup.kill", path, sizeof(path));
	if ((tree == cgroup_tree(h, "v2") || tree == cgroup_tree(h, "unified")) &&
	    file_poke(tree, path, "1", &e) == 0)
		return;
	kill_listed(h, name, tree);
}

static void kill_one(const struct cgroup_host *h, const char *name)
{
	for (size_t i = 0; i < h->tree_count; i++)
		kill_in(h, name, h->trees[i]);
}

void cgroup_kill_inner(const struct cgroup_host *h, const char *name)
{
	kill_in(h, name, cgroup_inner_tree(h));
}

static void kill_inner(void *arg, const char *inner)
{
	const struct inner_look *l = arg;
	char both[GROUP_NAME_SIZE + 64];

	snprintf(both, sizeof(both), "%s/%s", l->name, inner);
	cgroup_kill_inner(l->host, both);
}

void cgroup_kill(const struct cgroup_host *h, const char *name)
{
	struct inner_look l = { .host = h, .name = name };
	char one[GROUP_NAME_SIZE];

	for (size_t i = 0; i < array_len(suffixes); i++)
		kill_one(h, group_name(name, i, one));
	(void)!cgroup_each_inner(h, name, kill_inner, &l); /* the observation tells */
}

static int remove_one(const struct cgroup_host *h, const char *name, struct err *e)
{
	char path[256];

	cgroup_file(h, name, NULL, path, sizeof(path));
	for (size_t i = 0; i < h->tree_count; i++)
		if (unlinkat(h->trees[i], path, AT_REMOVEDIR) < 0 && errno != ENOENT)
			return err_sys(e, errno, "remove cgroup %s of %s", path, h->names[i]);
	return 0;
}

static void remove_inner(void *arg, const char *inner)
{
	const struct inner_look *l = arg;
	char both[GROUP_NAME_SIZE + 64], path[256];

	snprintf(both, sizeof(both), "%s/%s", l->name, inner);
	cgroup_file(l->host, both, NULL, path, sizeof(path));
	(void)unlinkat(cgroup_inner_tree(l->host), path, AT_REMOVEDIR); /* the outer one tells */
}

int cgroup_remove(const struct cgroup_host *h, const char *name, struct err *e)
{
	struct inner_look l = { .host = h, .name = name };
	char one[GROUP_NAME_SIZE];

	(void)!cgroup_each_inner(h, name, remove_inner, &l);
	for (size_t i = 0; i < array_len(suffixes); i++)
		if (remove_one(h, group_name(name, i, one), e) < 0)
			return -1;
	return 0;
}

static int launch_tree(const struct cgroup_host *h)
{
	static const char *const names[] = { "v2", "unified", "systemd", "pids" };

	return plain_tree(h, names, array_len(names));
}

int cgroup_enter_launch(const struct cgroup_host *h, const char *name, struct err *e)
{
	int tree = launch_tree(h);
	char one[GROUP_NAME_SIZE], path[256];

	if (tree < 0)
		return err_set(e, ERR_UNSUPPORTED, "no cgroup hierarchy to start an engine in");
	if (mkdirat(tree, h->parent, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make cgroup %s", h->parent);
	group_name(name, array_len(suffixes) - 1, one);
	cgroup_file(h, one, NULL, path, sizeof(path));
	if (mkdirat(tree, path, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make cgroup %s", path);
	return file_poke(tree, cgroup_file(h, one, "cgroup.procs", path, sizeof(path)), "0", e);
}

void cgroup_end_launch(const struct cgroup_host *h, const char *name)
{
	char one[GROUP_NAME_SIZE];
	struct err busy; /* an engine may stay in it: then it goes with the sandbox */

	(void)!remove_one(h, group_name(name, array_len(suffixes) - 1, one), &busy);
}

#include "node/group.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"

#define PATH_SIZE   256
#define STATUS_SIZE (16 * 1024)
#define PROCS_MAX   (1024 * 1024) /* as in node/cgroup.c */

/* We are root: a name that could lead out of the sandbox's group goes no further. */
int group_name_check(const char *name, struct err *e)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789._-";

	if (!str_starts(name, GROUP_PREFIX) || name[strspn(name, letters)])
		return err_set(e, ERR_INVALID, "not the name of a wrapper's group: %.60s", name);
	return 0;
}

/* SANDBOX/NAME, as cgroup_file() takes it. */
static const char *inner(const char *sandbox, const char *name, char out[PATH_SIZE])
{
	snprintf(out, PATH_SIZE, "%s/%s", sandbox, name);
	return out;
}

enum presence group_observe(const struct cgroup_host *h, const char *sandbox, const char *name)
{
	char path[PATH_SIZE];

	return cgroup_procs(h, inner(sandbox, name, path));
}

struct walk {
	const struct cgroup_host *host;
	const char *sandbox;
	group_fn *fn;
	void *arg;
};

static void tell_one(void *arg, const char *name)
{
	const struct walk *w = arg;

	w->fn(w->arg, name, group_observe(w->host, w->sandbox, name));
}

int group_each(const struct cgroup_host *h, const char *sandbox, group_fn *fn, void *arg,
	       struct err *e)
{
	struct walk w = { h, sandbox, fn, arg };

	if (cgroup_inner_tree(h) < 0)
		return err_set(e, ERR_UNSUPPORTED, "no cgroup hierarchy to keep wrappers in");
	if (cgroup_each_inner(h, sandbox, tell_one, &w) < 0)
		return err_sys(e, errno, "list the cgroups of %s", sandbox);
	return 0;
}

/* The last number of "NSpid:	7932	5". */
bool group_pid_read(const char *status, uint32_t *ret)
{
	const char *at = strstr(status, "\nNSpid:"), *end;
	char line[128], last[24];
	struct err ignored;
	uint64_t n;

	end = at ? strchr(at + 1, '\n') : NULL;
	if (!end || !str_copy_bytes(line, sizeof(line), at, (size_t)(end - at)) ||
	    !strrchr(line, '\t') || !str_copy(last, sizeof(last), strrchr(line, '\t') + 1) ||
	    str_u64(last, &n, &ignored) < 0 || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

bool group_pid_is(const char *status, uint32_t pid)
{
	uint32_t got;

	return group_pid_read(status, &got) && got == pid;
}

/* Which process of the host that is, among those of the sandbox. */
static int find_pid(const struct cgroup_host *h, const char *sandbox, uint32_t pid, char ret[24],
		    struct err *e)
{
	cleanup(buf_done) struct buf procs = buf_make(PROCS_MAX);
	char path[PATH_SIZE], *save = NULL;

	cgroup_file(h, sandbox, "cgroup.procs", path, sizeof(path));
	if (file_read(cgroup_inner_tree(h), path, &procs, e) < 0)
		return -1;
	for (char *word = procs.len ? strtok_r(procs.data, "\n", &save) : NULL; word;
	     word = strtok_r(NULL, "\n", &save)) {
		cleanup(buf_done) struct buf status = buf_make(STATUS_SIZE);
		struct err ended;

		snprintf(path, sizeof(path), "/proc/%.20s/status", word);
		if (file_read(AT_FDCWD, path, &status, &ended) == 0 &&
		    group_pid_is(buf_str(&status), pid))
			return str_copy(ret, 24, word) ? 0 : -1;
	}
	return err_set(e, ERR_NOT_FOUND, "no process of %s is called %u there", sandbox, pid);
}

int group_enter(const struct cgroup_host *h, const char *sandbox, const char *name, uint32_t pid,
		struct err *e)
{
	int tree = cgroup_inner_tree(h);
	char in[PATH_SIZE], path[PATH_SIZE], host_pid[24];

	if (tree < 0)
		return err_set(e, ERR_UNSUPPORTED, "no cgroup hierarchy to keep wrappers in");
	inner(sandbox, name, in);
	if (mkdirat(tree, cgroup_file(h, in, NULL, path, sizeof(path)), 0755) < 0 &&
	    errno != EEXIST)
		return err_sys(e, errno, "make cgroup %s", path);
	crash_point("node.group-made");
	if (find_pid(h, sandbox, pid, host_pid, e) < 0)
		return -1;
	/* It waits, so its number is its own until it is told to go on, or killed. */
	if (file_poke(tree, cgroup_file(h, in, "cgroup.procs", path, sizeof(path)), host_pid, e) <
	    0)
		return -1;
	crash_point("node.group-entered");
	return 0;
}

void group_kill(const struct cgroup_host *h, const char *sandbox, const char *name)
{
	char path[PATH_SIZE];

	cgroup_kill_inner(h, inner(sandbox, name, path));
}

struct removal {
	const struct cgroup_host *host;
	const char *sandbox, *prefix;
	int failed; /* errno */
};

static void remove_one(void *arg, const char *name)
{
	struct removal *r = arg;
	char in[PATH_SIZE], path[PATH_SIZE];

	if (!str_starts(name, r->prefix))
		return;
	cgroup_file(r->host, inner(r->sandbox, name, in), NULL, path, sizeof(path));
	if (unlinkat(cgroup_inner_tree(r->host), path, AT_REMOVEDIR) < 0 && errno != EBUSY &&
	    errno != ENOENT)
		r->failed = errno;
}

int group_remove(const struct cgroup_host *h, const char *sandbox, const char *prefix,
		 struct err *e)
{
	struct removal r = { .host = h, .sandbox = sandbox, .prefix = prefix };

	if (cgroup_each_inner(h, sandbox, remove_one, &r) < 0)
		r.failed = errno;
	return r.failed ? err_sys(e, r.failed, "remove cgroups of %s", sandbox) : 0;
}

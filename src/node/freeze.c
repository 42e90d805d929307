#include "node/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "node/presence.h"

#define FILE_MAX 4096

/* The v2 tree, or the v1 hierarchy made for this. All processes are in either. */
static const struct freezer {
	const char *tree, *file, *freeze, *thaw, *state, *frozen;
	bool kills; /* what is frozen can be killed */
} freezers[] = {
	{ "v2", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1", true },
	{ "unified", "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1", true },
	{ "freezer", "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN", false },
};

static const struct freezer *find(const struct cgroup_host *h, size_t *tree)
{
	for (size_t f = 0; f < array_len(freezers); f++)
		for (size_t i = 0; i < h->tree_count; i++)
			if (strcmp(h->names[i], freezers[f].tree) == 0) {
				*tree = i;
				return &freezers[f];
			}
	return NULL;
}

bool freeze_tree(const struct cgroup_host *h, size_t *ret)
{
	return find(h, ret);
}

static const struct freezer *freezer_of(const struct cgroup_host *h, int *tree)
{
	size_t i;
	const struct freezer *f = find(h, &i);

	if (f)
		*tree = h->trees[i];
	return f;
}

static int none(struct err *e)
{
	err_set(e, ERR_UNSUPPORTED, "this kernel has no cgroup hierarchy that can freeze");
	return err_fix(e, "Mount cgroup v2, or the v1 freezer, below /sys/fs/cgroup.");
}

static void path_of(const struct cgroup_host *h, const char *file, char out[128])
{
	snprintf(out, 128, "%s/%s", h->parent, file);
}

int freeze_all(const struct cgroup_host *h, struct err *e)
{
	const struct freezer *f;
	char path[128];
	int tree;

	f = freezer_of(h, &tree);
	if (!f)
		return none(e);
	/* It is made if need be: an engine on its way shall find it frozen. */
	if (mkdirat(tree, h->parent, 0755) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make cgroup %s", h->parent);
	path_of(h, f->file, path);
	return file_poke(tree, path, f->freeze, e);
}

int thaw_all(const struct cgroup_host *h, struct err *e)
{
	const struct freezer *f;
	char path[128];
	int tree;

	f = freezer_of(h, &tree);
	if (!f)
		return none(e);
	path_of(h, f->file, path);
	if (faccessat(tree, path, F_OK, 0) < 0 && errno == ENOENT)
		return 0; /* nothing is there to be let go */
	return file_poke(tree, path, f->thaw, e);
}

enum presence freeze_is_done(const struct cgroup_host *h)
{
	cleanup(buf_done) struct buf text = buf_make(FILE_MAX);
	const struct freezer *f;
	char path[128];
	struct err e;
	int tree;

	f = freezer_of(h, &tree);
	if (!f)
		return PRESENCE_UNKNOWN;
	path_of(h, f->state, path);
	if (file_read(tree, path, &text, &e) < 0)
		return e.code == ERR_NOT_FOUND ? PRESENCE_ABSENT : PRESENCE_UNKNOWN;
	return strstr(buf_str(&text), f->frozen) ? PRESENCE_PRESENT : PRESENCE_ABSENT;
}

/* Every name below the parent, in every hierarchy; some come more than once. */
static bool each_group(const struct cgroup_host *h,
		       void (*on_name)(const struct cgroup_host *, const char *, void *), void *arg)
{
	bool all = true;

	for (size_t i = 0; i < h->tree_count; i++) {
		int fd = openat(h->trees[i], h->parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
		struct dirent *entry;

		if (!dir) {
			all = all && errno == ENOENT;
			continue;
		}
		while ((entry = readdir(dir)))
			if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
				on_name(h, entry->d_name, arg);
	}
	return all;
}

static void kill_named(const struct cgroup_host *h, const char *name, void *arg)
{
	(void)arg;
	cgroup_kill(h, name);
}

void kill_all(const struct cgroup_host *h)
{
	const struct freezer *f;
	struct err ignored;
	int tree;

	(void)each_group(h, kill_named, NULL);
	f = freezer_of(h, &tree);
	if (f && !f->kills)
		(void)!thaw_all(h, &ignored); /* all were hit: none comes back to its own code */
}

static void look_at(const struct cgroup_host *h, const char *name, void *arg)
{
	enum presence group, process, *sum = arg;

	cgroup_observe(h, name, &group, &process);
	*sum = presence_sum(*sum, process);
}

enum presence anything_runs(const struct cgroup_host *h)
{
	enum presence sum = PRESENCE_ABSENT;

	if (!each_group(h, look_at, &sum) && sum == PRESENCE_ABSENT)
		return PRESENCE_UNKNOWN;
	return sum;
}

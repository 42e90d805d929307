/*
 * inventory: everything of any sandbox that is on this host, whatever it is
 * known by: our own record, a disk, a cgroup, an engine's record. One that has
 * only one of them is told like one that has all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"
#include "lib/strv.h"
#include "node/node.h"
#include "node/verbs.h"
#include "node/wire.h"

/* What others hang behind "sb_c1_x.3": the engine's start, and gVisor's files. */
static const char *const tails[] = { ".launch", "_sandbox:" };

static void add_name(struct strv *names, const char *file)
{
	size_t len = strlen(file);

	for (size_t i = 0; i < array_len(tails); i++) {
		const char *tail = strstr(file, tails[i]);

		if (tail && (size_t)(tail - file) < len)
			len = (size_t)(tail - file);
	}
	if (file[0] != '.')
		strv_addf(names, "%.*s", (int)len, file);
}

static int add_dir(struct strv *names, int dirfd, const char *path, struct err *e)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return err_sys(e, errno, "read %s", path);
	while ((entry = readdir(dir)))
		add_name(names, entry->d_name);
	return 0;
}

static void on_wire(uint32_t slot, const char *label, void *arg)
{
	(void)slot;
	if (label[0]) /* else it is nobody's yet */
		add_name(arg, label);
}

static int add_all(struct strv *names, struct node *n, struct err *e)
{
	if (add_dir(names, n->alloc_fd, ".", e) < 0 ||
	    wire_list(&n->router.links, on_wire, names, e) < 0 ||
	    add_dir(names, n->pool.sandboxes, ".", e) < 0)
		return -1;
	for (size_t i = 0; i < n->cgroups.tree_count; i++)
		if (add_dir(names, n->cgroups.trees[i], n->cgroups.parent, e) < 0)
			return -1;
	for (size_t i = 0; runtime_at(i); i++)
		if (add_dir(names, n->engine_fd, runtime_at(i)->name, e) < 0)
			return -1;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "sb_c1_x.3" to its two parts. */
static bool name_parse(const char *name, char sandbox[NODE_NAME_SIZE], uint64_t *generation)
{
	const char *dot = strrchr(name, '.');
	struct err e;

	return dot && str_copy_bytes(sandbox, NODE_NAME_SIZE, name, (size_t)(dot - name)) &&
	       str_u64(dot + 1, generation, &e) == 0;
}

static void tell(struct call *c, const struct strv *names)
{
	char sandbox[NODE_NAME_SIZE];
	struct node_observation o;
	uint64_t generation;

	for (size_t i = 0; i < names->len; i++) {
		if ((i > 0 && strcmp(names->items[i - 1], names->items[i]) == 0) ||
		    !name_parse(names->items[i], sandbox, &generation))
			continue;
		allocation_observe(c->node, sandbox, generation, &o);
		call_part(c, &o);
	}
}

void verb_inventory(struct call *c)
{
	static const struct node_nothing nothing;
	cleanup(strv_done) struct strv names = { 0 };
	struct err e = { 0 };

	/* Who follows must hear what ends, also where not everything could be listed. */
	if (add_all(&names, c->node, &e) < 0 && !c->ask.cursor.follow)
		return call_fail(c, &e);
	if (names.len > 0)
		qsort(names.items, names.len, sizeof(*names.items), by_name);
	tell(c, &names);
	if (c->ask.cursor.follow && c->link) {
		call_part(c, &(struct node_observation){ 0 }); /* the list is through */
		c->next_waiter = c->node->followers;
		c->node->followers = c;
		return;
	}
	call_reply(c, &nothing, -1);
}

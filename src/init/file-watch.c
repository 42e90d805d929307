/*
 * Changes below a path, as inotify tells them. Directories that appear are
 * watched too; what was put into one before we could watch it is told as
 * created, so nothing is missed (some things may be told twice).
 *
 * Names that begin with `.berth-` are ours, on their way to the name they are
 * for. They are not told; what is told is the change of that name.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "init/file-op.h"
#include "lib/atomic-file.h"
#include "lib/errno-map.h"

#define WATCHES_MAX 16384
#define DEPTH_MAX   256
#define MOVE_MS     20 /* for the second half of a move */
#define WATCH_MASK \
	(IN_CREATE | IN_DELETE | IN_MODIFY | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | \
	 IN_DELETE_SELF | IN_EXCL_UNLINK)

struct watch {
	struct file_op *op;
	int fd;
	char **paths; /* by watch descriptor; NULL: none */
	size_t size, count;
	uint32_t cookie; /* of a move whose second half has not come */
	char moving[FILE_PATH_SIZE];
};

static int tell(struct watch *w, uint32_t type, const char *path, const char *to, struct err *e)
{
	cleanup(buf_done) struct buf record = buf_make(16384);
	struct file_change c = { .type = type };

	snprintf(c.path, sizeof(c.path), "%s", path);
	snprintf(c.to, sizeof(c.to), "%s", to ? to : "");
	file_change_encode(&record, &c);
	return op_put(w->op, FRAME_CHANGE, &record, e);
}

static int add_watch(struct watch *w, const char *path)
{
	int wd;

	if (w->count == WATCHES_MAX) {
		errno = ENOSPC;
		return -1;
	}
	wd = inotify_add_watch(w->fd, path, WATCH_MASK);
	if (wd < 0)
		return -1;
	if ((size_t)wd >= w->size) {
		size_t size = ((size_t)wd + 64) * 2;

		w->paths = xrealloc(w->paths, size * sizeof(w->paths[0]));
		memset(w->paths + w->size, 0, (size - w->size) * sizeof(w->paths[0]));
		w->size = size;
	}
	w->count += !w->paths[wd];
	free(w->paths[wd]);
	w->paths[wd] = xstrdup(path);
	return 0;
}

static void drop_watch(struct watch *w, int wd)
{
	if (wd < 0 || (size_t)wd >= w->size || !w->paths[wd])
		return;
	free(take_ptr(w->paths[wd]));
	w->count--;
}

static bool join(char out[FILE_PATH_SIZE], const char *dir, const char *name)
{
	int n = snprintf(out, FILE_PATH_SIZE, "%s%s%s", strcmp(dir, "/") == 0 ? "" : dir,
			 name[0] ? "/" : "", name);

	return n > 0 && n < FILE_PATH_SIZE;
}

static bool is_ours(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return strncmp(name, ATOMIC_FILE_PREFIX, strlen(ATOMIC_FILE_PREFIX)) == 0;
}

/* The kernel calls a file that has no name yet by its number, and tells of it. */
static bool is_nameless(const char *name, const char *path)
{
	struct stat st;

	return name[0] == '#' && !name[1 + strspn(name + 1, "0123456789")] &&
	       lstat(path, &st) < 0 && errno == ENOENT;
}

/* `found`: it appeared while we watched, so what is in it is news. */
static int watch_below(struct watch *w, const char *path, bool found, int depth, struct err *e)
{
	char below[FILE_PATH_SIZE];
	struct dirent *entry;
	struct stat st;
	DIR *d;
	int n = 0;

	if (add_watch(w, path) < 0)
		return errno == ENOENT || errno == ENOTDIR
			       ? 0
			       : err_set(e, ERR_LIMIT, "watch %.150s: %s", path, strerror(errno));
	d = depth < DEPTH_MAX ? opendir(path) : NULL;
	while (n == 0 && d && (entry = readdir(d))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
		    is_ours(entry->d_name) || !join(below, path, entry->d_name))
			continue;
		if (found)
			n = tell(w, FILE_CHANGE_CREATED, below, NULL, e);
		if (n == 0 && lstat(below, &st) == 0 && S_ISDIR(st.st_mode))
			n = watch_below(w, below, found, depth + 1, e);
	}
	if (d)
		closedir(d);
	return n;
}

/* A directory has another path now, and so has all we watch below it. */
static void rename_watches(struct watch *w, const char *from, const char *to)
{
	size_t len = strlen(from);
	char path[FILE_PATH_SIZE];

	for (size_t i = 0; i < w->size; i++) {
		const char *old = w->paths[i];

		if (!old || strncmp(old, from, len) != 0 || (old[len] && old[len] != '/') ||
		    strlen(to) + strlen(old + len) >= sizeof(path))
			continue;
		snprintf(path, sizeof(path), "%s%s", to, old + len);
		free(w->paths[i]);
		w->paths[i] = xstrdup(path);
	}
}

/* The other half did not come: it left what we watch. */
static int settle_move(struct watch *w, struct err *e)
{
	if (w->cookie == 0)
		return 0;
	w->cookie = 0;
	return is_ours(w->moving) ? 0 : tell(w, FILE_CHANGE_DELETED, w->moving, NULL, e);
}

/*
 * A file of ours is renamed only over one that was there (a new one is linked), so that one
 * was modified. A directory of ours is made apart and then put in its place.
 */
static int on_moved_to(struct watch *w, const struct inotify_event *ev, const char *path,
		       struct err *e)
{
	bool known = w->cookie != 0 && w->cookie == ev->cookie;
	bool dir = ev->mask & IN_ISDIR;
	bool ours;

	if ((!known || is_ours(path)) && settle_move(w, e) < 0)
		return -1;
	w->cookie = 0;
	if (is_ours(path))
		return 0;
	ours = known && is_ours(w->moving);
	if (known && dir && !ours)
		rename_watches(w, w->moving, path);
	if (ours && !dir)
		return tell(w, FILE_CHANGE_MODIFIED, path, NULL, e);
	if (known && !ours && tell(w, FILE_CHANGE_MOVED, w->moving, path, e) < 0)
		return -1;
	if ((!known || ours) && tell(w, FILE_CHANGE_CREATED, path, NULL, e) < 0)
		return -1;
	return dir && w->op->q.flags & FILE_RECURSIVE ? watch_below(w, path, ours, 0, e) : 0;
}

/*
 * The file that is watched by its own path is gone, or lost a name. If another one has its
 * path now, that is the one to watch. Returns whether there is another.
 */
static bool watch_successor(struct watch *w, int wd, const char *path)
{
	size_t before = w->count;

	if (add_watch(w, path) < 0 || w->count == before) /* none, or the same file */
		return false;
	(void)inotify_rm_watch(w->fd, wd); /* it may be gone by itself */
	drop_watch(w, wd);
	return true;
}

static int on_event(struct watch *w, const struct inotify_event *ev, struct err *e)
{
	char path[FILE_PATH_SIZE];
	bool recursive = w->op->q.flags & FILE_RECURSIVE;

	if (ev->mask & IN_Q_OVERFLOW)
		return tell(w, FILE_CHANGE_OVERFLOW, w->op->q.path, NULL, e);
	if (ev->wd < 0 || (size_t)ev->wd >= w->size || !w->paths[ev->wd] ||
	    !join(path, w->paths[ev->wd], ev->len ? ev->name : ""))
		return 0;
	if (!(ev->mask & IN_MOVED_TO) && settle_move(w, e) < 0)
		return -1;
	if (ev->mask & IN_MOVED_FROM) {
		w->cookie = ev->cookie;
		memcpy(w->moving, path, sizeof(path));
		return 0;
	}
	if (ev->mask & IN_MOVED_TO)
		return on_moved_to(w, ev, path, e);
	if (ev->len && (is_ours(ev->name) || is_nameless(ev->name, path)))
		return 0;
	if (!ev->len && ev->mask & (IN_ATTRIB | IN_DELETE_SELF) && !(ev->mask & IN_ISDIR) &&
	    strcmp(path, w->op->q.path) == 0 && watch_successor(w, ev->wd, path))
		return tell(w, FILE_CHANGE_MODIFIED, path, NULL, e);
	if (ev->mask & IN_CREATE) {
		if (tell(w, FILE_CHANGE_CREATED, path, NULL, e) < 0)
			return -1;
		return ev->mask & IN_ISDIR && recursive ? watch_below(w, path, true, 0, e) : 0;
	}
	if (ev->mask & IN_DELETE || (ev->mask & IN_DELETE_SELF && strcmp(path, w->op->q.path) == 0))
		return tell(w, FILE_CHANGE_DELETED, path, NULL, e);
	if (ev->mask & (IN_MODIFY | IN_ATTRIB) && (ev->len || !(ev->mask & IN_ISDIR)))
		return tell(w, FILE_CHANGE_MODIFIED, path, NULL, e);
	if (ev->mask & IN_IGNORED)
		drop_watch(w, ev->wd);
	return 0;
}

static int read_events(struct watch *w, struct err *e)
{
	_Alignas(struct inotify_event) char bytes[64 * 1024];
	ssize_t n = read(w->fd, bytes, sizeof(bytes));

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : err_file(e, errno, "watch");
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const void *)(bytes + at);

		if (on_event(w, ev, e) < 0)
			return -1;
		at += (ssize_t)(sizeof(*ev) + ev->len);
	}
	return 0;
}

/* Until the peer goes: it has nothing more to say, so whatever it says is the end. */
static int follow(struct watch *w, struct err *e)
{
	for (;;) {
		struct pollfd fds[] = { { w->fd, POLLIN, 0 }, { w->op->peer->fd, POLLIN, 0 } };
		int n = poll(fds, 2, w->cookie ? MOVE_MS : 1000);

		if (n < 0 && errno != EINTR)
			return err_file(e, errno, "watch");
		if (fds[1].revents)
			return 0;
		if (n == 0 && settle_move(w, e) < 0)
			return -1;
		if (fds[0].revents && read_events(w, e) < 0)
			return -1;
		if (op_tick(w->op, e) < 0 || (w->op->batch.len > 0 && op_flush(w->op, e) < 0))
			return -1;
	}
}

static void watch_done(struct watch *w)
{
	for (size_t i = 0; i < w->size; i++)
		free(w->paths[i]);
	free(w->paths);
	close_fd(&w->fd);
}

int files_watch(struct file_op *op, struct err *e)
{
	cleanup(watch_done) struct watch w = { .op = op,
					       .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
	struct stat st;
	int n;

	if (w.fd < 0)
		return err_file(e, errno, "watch %.150s", op->q.path);
	if (stat(op->q.path, &st) < 0)
		return err_file(e, errno, "watch %.150s", op->q.path);
	if (op->q.flags & FILE_RECURSIVE && S_ISDIR(st.st_mode))
		n = watch_below(&w, op->q.path, false, 0, e);
	else if ((n = add_watch(&w, op->q.path)) < 0)
		n = err_set(e, ERR_LIMIT, "watch %.150s: %s", op->q.path, strerror(errno));
	if (n < 0 || tell(&w, FILE_CHANGE_WATCHING, op->q.path, NULL, e) < 0)
		return -1;
	return follow(&w, e);
}

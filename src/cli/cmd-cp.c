/* berth cp: files and whole trees, into a sandbox and out of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/say.h"
#include "lib/atomic-file.h"
#include "lib/file.h"
#include "lib/pack.h"
#include "lib/str.h"
#include "lib/unpack.h"

#define TREE_MODES 0777 /* set-user-id bits of a guest mean nothing good here */

/* "ID:/path": the id and the path. */
struct remote {
	char id[128];
	const char *path;
};

static bool parse_remote(const char *text, struct remote *ret)
{
	const char *colon = strstr(text, ":/");

	if (!colon || memchr(text, '/', (size_t)(colon - text)))
		return false;
	ret->path = colon + 1;
	return colon > text &&
	       str_copy_bytes(ret->id, sizeof(ret->id), text, (size_t)(colon - text));
}

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Trailing slashes off; "/" stays. */
static void trim(char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		path[--len] = '\0';
}

static void files_url(struct buf *out, const struct remote *r, const char *verb, const char *path)
{
	buf_adds(out, "/v1/sandboxes/");
	fetch_escape(out, r->id);
	buf_addf(out, "/files%s?path=", verb);
	fetch_escape(out, path);
}

static int no_path_here(const char *path, struct err *e)
{
	err_sys(e, errno, "%s", path);
	return err_fix(e, "Check the path: it is one on this machine. ID:/PATH is in a sandbox.");
}

/* The type of a remote path: "file", "directory", ..., or "" if there is nothing. */
static int remote_type(const struct context *c, const struct remote *r, const char *path,
		       char type[16], unsigned *mode, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);

	type[0] = '\0';
	files_url(&url, r, "/stat", path);
	if (client_call(c, "GET", buf_str(&url), NULL, &reply, e) < 0)
		return e->reason && strcmp(e->reason, "no_such_file") == 0 ? 0 : -1;
	snprintf(type, 16, "%s", json_get_str(reply.tree, "type"));
	*mode = 0;
	for (const char *at = json_get_str(reply.tree, "mode"); *at >= '0' && *at <= '7'; at++)
		*mode = *mode * 8 + (unsigned)(*at - '0');
	return 0;
}

/* As cp does: into a directory under its own name, otherwise under the name given. */
static int remote_target(const struct context *c, const struct remote *r, const char *from,
			 char out[TAR_PATH_SIZE], struct err *e)
{
	char type[16], name[TAR_PATH_SIZE], dot[TAR_PATH_SIZE];
	size_t len = strlen(r->path);
	unsigned mode;

	/* "/." has a link that leads to a directory seen as one. */
	if (len + 3 > sizeof(dot) || strlen(from) >= sizeof(name))
		return err_set(e, ERR_INVALID, "the path is too long");
	snprintf(dot, sizeof(dot), "%s/.", r->path);
	if (remote_type(c, r, dot, type, &mode, e) < 0 &&
	    !(e->reason && strcmp(e->reason, "not_a_directory") == 0))
		return -1;
	memcpy(name, from, strlen(from) + 1);
	trim(name);
	if (strcmp(type, "directory") != 0 && r->path[len - 1] != '/')
		snprintf(out, TAR_PATH_SIZE, "%s", r->path);
	else if (snprintf(out, TAR_PATH_SIZE, "%s%s%s", r->path,
			  r->path[len - 1] == '/' ? "" : "/", base_of(name)) >= TAR_PATH_SIZE)
		return err_set(e, ERR_INVALID, "the path is too long");
	return 0;
}

/* ---- in ---- */

static int put_file(const struct context *c, const struct remote *r, const char *path, int fd,
		    const struct stat *st, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.method = "PUT",
		.content_type = "application/octet-stream",
		.upload = true,
		.body_fd = fd,
	};

	files_url(&url, r, "", path);
	if (S_ISREG(st->st_mode)) {
		q.body_size = (uint64_t)st->st_size;
		buf_addf(&url, "&mode=%04o", (unsigned)st->st_mode & 0777);
	}
	return client_fetch(c, buf_str(&url), &q, &reply, e);
}

static int write_pipe(void *data, const void *bytes, size_t len, struct err *e)
{
	const int *fd = data;

	return write_all(*fd, bytes, len) < 0 ? err_sys(e, errno, "send the tree") : 0;
}

/* In a process of its own: it reads the tree while the other sends. */
static no_return void pack_child(const char *from, int fd)
{
	struct pack *p = xcalloc(1, sizeof(*p));
	struct err e;

	p->write = write_pipe;
	p->data = &fd;
	if (pack_path(p, from, &e) == 0)
		_exit(EXIT_SUCCESS);
	say("%s", e.msg);
	_exit(EXIT_FAILURE);
}

static int put_tree(const struct context *c, const struct remote *r, const char *from,
		    const char *path, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.method = "PUT",
		.content_type = "application/x-tar",
		.upload = true,
	};
	int pipes[2], status = 0, n;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	pid = fork();
	if (pid < 0)
		return err_sys(e, errno, "start a process");
	if (pid == 0) {
		close(pipes[0]);
		pack_child(from, pipes[1]);
	}
	close(pipes[1]);
	q.body_fd = pipes[0];
	files_url(&url, r, "/tar", path);
	n = client_fetch(c, buf_str(&url), &q, &reply, e);
	close(pipes[0]);
	(void)waitpid(pid, &status, 0);
	if (n == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
		n = err_set(e, ERR_INTERNAL, "%s could not be read to its end", from);
	return n;
}

static int copy_in(const struct context *c, const char *from, const struct remote *r, struct err *e)
{
	cleanup(close_fd) int fd = -1;
	char path[TAR_PATH_SIZE];
	struct stat st = { 0 };

	if (strcmp(from, "-") == 0)
		return put_file(c, r, r->path, STDIN_FILENO, &st, e);
	if (stat(from, &st) < 0)
		return no_path_here(from, e);
	if (remote_target(c, r, from, path, e) < 0)
		return -1;
	if (S_ISDIR(st.st_mode))
		return put_tree(c, r, from, path, e);
	fd = open(from, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return no_path_here(from, e);
	return put_file(c, r, path, fd, &st, e);
}

/* ---- out ---- */

/* Where what comes is written: a file that takes its place at the end, a tree, or a stream. */
struct sink {
	struct atomic_file *file;
	struct unpack *tree;
	bool out;
};

static int on_bytes(void *arg, const char *data, size_t len, struct err *e)
{
	struct sink *s = arg;

	if (s->tree)
		return unpack_feed(s->tree, data, len, e);
	if (s->out)
		return say_bytes(data, len, e);
	return atomic_file_write(s->file, data, len) < 0 ? err_sys(e, errno, "write %s",
								   s->file->name)
							 : 0;
}

static int get(const struct context *c, const struct remote *r, const char *verb, const char *type,
	       struct sink *s, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = {
		.accept = type,
		.sink = on_bytes,
		.sink_type = type,
		.arg = s,
		.body_fd = -1,
	};

	files_url(&url, r, verb, r->path);
	return client_fetch(c, buf_str(&url), &q, &reply, e);
}

/* The directory a local path is in, open, and its last part: never a name the guest chose. */
static int local_parent(const char *to, const char *own_name, int *dir, char name[256],
			struct err *e)
{
	char path[TAR_PATH_SIZE];
	struct stat st;
	char *slash;

	if (strlen(to) >= sizeof(path) || strlen(own_name) > 255)
		return err_set(e, ERR_INVALID, "the path is too long");
	memcpy(path, to, strlen(to) + 1);
	if (stat(to, &st) == 0 && S_ISDIR(st.st_mode)) {
		snprintf(name, 256, "%s", own_name);
	} else {
		trim(path);
		slash = strrchr(path, '/');
		if (strlen(base_of(path)) > 255)
			return err_set(e, ERR_INVALID, "the name is too long: %.100s", path);
		snprintf(name, 256, "%s", base_of(path));
		if (!slash)
			memcpy(path, ".", 2);
		else
			slash[slash == path] = '\0';
	}
	*dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *dir < 0 ? no_path_here(path, e) : 0;
}

static int get_file(const struct context *c, const struct remote *r, int dir, const char *name,
		    unsigned mode, struct err *e)
{
	cleanup(atomic_file_abort) struct atomic_file file = { .fd = -1 };
	struct sink s = { .file = &file };
	struct stat old;
	bool there = fstatat(dir, name, &old, 0) == 0;

	if (atomic_file_begin(&file, dir, name) < 0)
		return err_sys(e, errno, "write %s", name);
	if (get(c, r, "", "application/octet-stream", &s, e) < 0)
		return -1;
	if (atomic_file_commit(&file, there ? &old : NULL, mode & TREE_MODES) < 0)
		return err_sys(e, errno, "write %s", name);
	return 0;
}

static int get_tree(const struct context *c, const struct remote *r, int parent, const char *name,
		    struct err *e)
{
	cleanup(close_fd) int dir = -1;
	cleanup(free_ptr) struct unpack *u = xcalloc(1, sizeof(*u));
	struct sink s = { .tree = u };
	int n;

	if (mkdirat(parent, name, 0777) < 0 && errno != EEXIST)
		return err_sys(e, errno, "make directory %s", name);
	dir = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, errno, "%s", name);
	unpack_init(u, dir, TREE_MODES);
	n = get(c, r, "/tar", "application/x-tar", &s, e);
	if (n == 0)
		n = unpack_end(u, e);
	unpack_done(u);
	return n;
}

static int copy_out(const struct context *c, const struct remote *given, const char *to,
		    struct err *e)
{
	struct remote trimmed = *given, *r = &trimmed;
	struct sink out = { .out = true };
	cleanup(close_fd) int dir = -1;
	char type[16], name[256], path[TAR_PATH_SIZE];
	unsigned mode;

	if (!str_copy(path, sizeof(path), given->path))
		return err_set(e, ERR_INVALID, "the path is too long");
	trim(path);
	r->path = path;
	if (strcmp(to, "-") == 0)
		return get(c, r, "", "application/octet-stream", &out, e);
	if (remote_type(c, r, path, type, &mode, e) < 0)
		return -1;
	if (strcmp(type, "symlink") == 0) { /* what it leads to */
		char dot[TAR_PATH_SIZE + 2];

		snprintf(dot, sizeof(dot), "%s/.", path);
		mode = 0644;
		if (remote_type(c, r, dot, type, &mode, e) < 0)
			type[0] = '\0';
	}
	if (local_parent(to, path[1] ? base_of(path) : "root", &dir, name, e) < 0)
		return -1;
	if (strcmp(type, "directory") == 0)
		return get_tree(c, r, dir, name, e);
	return get_file(c, r, dir, name, type[0] ? mode : 0644, e);
}

/* "ID:path" and no file of that name here: a path in a sandbox was meant. */
static int check_local(const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	size_t id_len = colon ? (size_t)(colon - text) : 0;

	if (id_len == 0 || memchr(text, '/', id_len) || access(text, F_OK) == 0)
		return 0;
	err_set(e, ERR_INVALID, "%.100s: a path in a sandbox begins with /", text);
	return err_fix(e, "Write the whole path, like %.*s:/%.60s, or ./%.60s for a file here.",
		       id_len > 40 ? 40 : (int)id_len, text, colon + 1, text);
}

static int refuse_both(const struct remote *from, const struct remote *to, struct err *e)
{
	err_set(e, ERR_INVALID, "both are in a sandbox: cp copies from here or to here");
	if (strcmp(from->id, to->id) == 0)
		return err_fix(e, "Copy inside: berth exec %.40s -- cp -a %.50s %.50s", from->id,
			       from->path, to->path);
	return err_fix(e, "Copy it here first, then from here; a file also in one line: "
			  "berth cp FROM - | berth cp - TO");
}

static int run(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	struct remote from, to;
	bool is_out = parse_remote(args->items[0], &from);
	bool is_in = parse_remote(args->items[1], &to);

	(void)options;
	if (is_out && is_in)
		return refuse_both(&from, &to, e);
	if ((!is_out && check_local(args->items[0], e) < 0) ||
	    (!is_in && check_local(args->items[1], e) < 0))
		return -1;
	if (is_out == is_in) {
		err_set(e, ERR_INVALID, "one of the two must be in a sandbox, like ID:/path");
		return err_fix(e, "berth cp FILE ID:/path, or berth cp ID:/path FILE");
	}
	return is_in ? copy_in(c, args->items[0], &to, e) : copy_out(c, &from, args->items[1], e);
}

const struct command cmd_cp = {
	.name = "cp",
	.usage = "FROM TO",
	.help = "Copy a file or a tree, into a sandbox or out of it",
	.details = "One of the two is ID:/path, from the root of the sandbox; the other is a\n"
		   "local path, or - for a stream. ./a:b is a local file with a colon.\n"
		   "A directory is copied with all that is in it; symbolic links are\n"
		   "copied as links.",
	.min = 2,
	.max = 2,
	.run = run,
};

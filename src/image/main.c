/*
 * berth-image: fills the directory it is given with an image.
 *
 *   berth-image [--max-bytes N] import             < a tar of a root, or of an image's layers
 *   berth-image [--max-bytes N] [--insecure] pull REFERENCE
 *
 * Descriptor 3 is the image's directory with an empty `rootfs` in it, 4 is
 * where the results go (image/report.h). berth-node starts one for each image,
 * so that nothing with privileges ever reads what a stranger made.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "image/confine.h"
#include "image/layout.h"
#include "image/pull.h"
#include "image/report.h"
#include "image/rootfs.h"
#include "image/unpack.h"
#include "lib/file.h"
#include "lib/str.h"

#define IMAGE_FD          3
#define ARCHIVE_DEPTH_MAX 8 /* "./blobs/sha256/..." has four */

struct job {
	bool insecure;
	const char *reference; /* NULL: import */
	struct unpack unpack;
	struct report report;
};

/*
 * Opened before the image's root is entered, which leads nowhere else, and written after: the
 * image's own files say which numbers its user has.
 */
static int open_config(int *ret, struct err *e)
{
	*ret = openat(IMAGE_FD, IMAGE_CONFIG_FILE,
		      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return *ret < 0 ? err_sys(e, errno, "make the image's config") : 0;
}

static int write_config(int fd, const struct image_config *c, struct err *e)
{
	cleanup(buf_done) struct buf record = buf_make(IMAGE_CONFIG_MAX);

	image_config_encode(&record, c);
	if (buf_overflowed(&record))
		return err_set(e, ERR_TOO_LARGE, "the image's environment is too long");
	if (image_config_check(c, e) < 0)
		return -1;
	if (write_all(fd, record.data, record.len) < 0 || fsync(fd) < 0)
		return err_sys(e, errno, "write the image's config");
	return 0;
}

/* From here on only descriptors of plain files are left that lead anywhere else. */
static int enter_rootfs(struct err *e)
{
	close(IMAGE_FD);
	if (confine_root("rootfs", e) < 0 || confine_end(e) < 0)
		return -1;
	umask(022); /* what an archive says nothing of, its root above all, is as everywhere */
	return chmod("/", 0755) < 0 ? err_sys(e, errno, "open the root directory to all") : 0;
}

static int import_rootfs(struct job *j, char digest[80], struct err *e)
{
	cleanup(image_config_done) struct image_config c = { .cwd = "/" };
	cleanup(close_fd) int config = -1;

	strv_add(&c.env, "PATH=" IMAGE_PATH);
	if (open_config(&config, e) < 0 || enter_rootfs(e) < 0 ||
	    unpack_tar(&j->unpack, STDIN_FILENO, digest, e) < 0)
		return -1;
	return write_config(config, &c, e);
}

/* Over each other, into the root; `l` is open. */
static int unpack_layers(struct job *j, struct layout *l, struct err *e)
{
	cleanup(close_fd) int config = -1;

	if (open_config(&config, e) < 0 || enter_rootfs(e) < 0)
		return -1;
	j->unpack.total = l->bytes;
	j->unpack.read = 0;
	for (size_t i = 0; i < l->count; i++) {
		char got[UNPACK_DIGEST_SIZE];

		if (unpack_layer(&j->unpack, l->layers[i], got, e) < 0)
			return err_wrap(e, "layer %zu", i + 1);
		if (l->digests[i][0] && strcmp(got, l->digests[i]) != 0)
			return err_set(e, ERR_INVALID, "layer %zu has another digest", i + 1);
	}
	if (rootfs_user(&l->config, e) < 0)
		return -1;
	return write_config(config, &l->config, e);
}

/*
 * First the archive into a directory of its own, then its layers. The image is known by the
 * digest of the archive, the only one here that covers every byte of it.
 */
static int import_layers(struct job *j, struct layout *l, char digest[80], struct err *e)
{
	struct unpack outer = j->unpack;

	outer.depth_max = ARCHIVE_DEPTH_MAX;
	if (mkdir(PULL_DIR, 0700) < 0 || mkdir(PULL_LAYOUT, 0700) < 0 || chdir(PULL_LAYOUT) < 0)
		return err_sys(e, errno, "make a directory for the archive");
	if (unpack_tar(&outer, STDIN_FILENO, digest, e) < 0)
		return -1;
	if (chdir("/") < 0)
		return err_sys(e, errno, "go back to the image's directory");
	if (layout_open_archive(PULL_LAYOUT, l, e) < 0)
		return -1;
	return unpack_layers(j, l, e);
}

static int import(struct job *j, struct layout *l, char digest[80], struct err *e)
{
	bool layered = false;
	struct stat st;

	if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode)) {
		j->unpack.total = (uint64_t)st.st_size;
		if (unpack_is_layered(STDIN_FILENO, j->unpack.max_bytes, &layered, e) < 0)
			return -1;
	}
	return layered ? import_layers(j, l, digest, e) : import_rootfs(j, digest, e);
}

static int unpack_pulled(struct job *j, struct layout *l, char digest[80], struct err *e)
{
	if (layout_open(PULL_LAYOUT, l, e) < 0)
		return -1;
	memcpy(digest, l->digest, sizeof(l->digest));
	return unpack_layers(j, l, e);
}

static int unpack(struct job *j, char digest[80], struct err *e)
{
	cleanup(layout_close) struct layout l = { 0 };

	if (fchdir(IMAGE_FD) < 0)
		return err_sys(e, errno, "enter the image's directory");
	if (confine_begin(e) < 0 || confine_root(".", e) < 0)
		return -1;
	return j->reference ? unpack_pulled(j, &l, digest, e) : import(j, &l, digest, e);
}

/* What the unpacker leaves behind: all that its parent ever reads of it. */
struct outcome {
	char digest[80];
	uint64_t bytes;
	struct err e; /* ERR_NONE: it is done */
};

static no_return void unpacker(struct job *j, int to)
{
	struct outcome o = { .e.code = ERR_NONE };

	if (unpack(j, o.digest, &o.e) == 0 && rootfs_finish(&o.e) == 0)
		o.bytes = j->unpack.bytes;
	_exit(write_all(to, &o, sizeof(o)) < 0);
}

/* A stranger's image may have taken the unpacker over: its strings end where we say. */
static int take_outcome(int from, struct outcome *o, struct err *e)
{
	if (read(from, o, sizeof(*o)) != sizeof(*o))
		return err_set(e, ERR_INVALID, "the image broke its unpacker");
	o->digest[sizeof(o->digest) - 1] = '\0';
	o->e.msg[sizeof(o->e.msg) - 1] = '\0';
	if (o->e.code != ERR_NONE)
		return err_set(e, err_code_by_number(o->e.code), "%s", o->e.msg);
	return 0;
}

static int run_unpacker(struct job *j, struct outcome *ret, struct err *e)
{
	cleanup(close_fd) int from = -1;
	int pipe[2], n;
	pid_t pid;

	if (pipe2(pipe, O_CLOEXEC) < 0)
		return err_sys(e, errno, "make a pipe");
	from = pipe[0];
	pid = fork();
	if (pid == 0)
		unpacker(j, pipe[1]);
	close(pipe[1]);
	if (pid < 0)
		return err_sys(e, errno, "start the unpacker");
	n = take_outcome(from, ret, e); /* less than a pipe holds: whole, or never */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return n;
}

static int pull(struct job *j, struct outcome *ret, struct err *e)
{
	struct pull p = {
		.reference = j->reference,
		.insecure = j->insecure,
		.max_bytes = j->unpack.max_bytes,
		.report = &j->report,
	};

	return pull_run(&p, IMAGE_FD, e) < 0 ? -1 : run_unpacker(j, ret, e);
}

static int run(struct job *j, struct err *e)
{
	struct outcome o = { 0 };
	int n = j->reference ? pull(j, &o, e) : run_unpacker(j, &o, e);
	struct err later;

	/* The layers as they came; the first trouble is the one to tell. */
	if (file_remove_tree(IMAGE_FD, PULL_DIR, &later) < 0 && n == 0) {
		*e = later;
		return -1;
	}
	if (n < 0)
		return -1;
	report_done(o.digest, o.bytes);
	return 0;
}

static int parse_args(int argc, char **argv, struct job *j, struct err *e)
{
	static const struct option options[] = {
		{ "max-bytes", required_argument, NULL, 'm' },
		{ "insecure", no_argument, NULL, 'i' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'i')
			j->insecure = true;
		else if (c != 'm')
			return err_set(e, ERR_INVALID, "unknown option");
		else if (str_size(optarg, &j->unpack.max_bytes, e) < 0)
			return -1;
	}
	if (argc - optind == 1 && strcmp(argv[optind], "import") == 0)
		return 0;
	if (argc - optind == 2 && strcmp(argv[optind], "pull") == 0) {
		j->reference = argv[optind + 1];
		return 0;
	}
	return err_set(e, ERR_INVALID, "usage: berth-image import | pull REFERENCE");
}

int main(int argc, char **argv)
{
	struct job j = { .unpack.max_bytes = UNPACK_BYTES_MAX };
	struct err e;

	j.unpack.report = &j.report;
	/* Whatever else was left open is not for those we start. */
	(void)close_range(REPORT_FD + 1, ~0U, 0);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	if (parse_args(argc, argv, &j, &e) < 0 || run(&j, &e) < 0) {
		fprintf(stderr, "berth-image: %s\n", e.msg);
		report_error(&e);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

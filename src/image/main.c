/*
 * berth-image: fills the directory it is given with an image.
 *
 *   berth-image [--max-bytes N] import             < a tar
 *   berth-image [--max-bytes N] [--insecure] pull REFERENCE
 *
 * Descriptor 3 is the image's directory with an empty `rootfs` in it, 4 is
 * where the results go (image/report.h). berth-node starts one for each image,
 * so that nothing with privileges ever reads what a stranger made.
 */
#include <errno.h>
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

#define IMAGE_FD 3

struct job {
	const char *verb;
	bool insecure;
	const char *reference; /* NULL: import */
	struct unpack unpack;
	struct report report;
};

static int write_config(const struct image_config *c, struct err *e)
{
	cleanup(buf_done) struct buf record = buf_make(IMAGE_CONFIG_MAX);

	image_config_encode(&record, c);
	if (buf_overflowed(&record))
		return err_set(e, ERR_TOO_LARGE, "the image's environment is too long");
	return file_replace(IMAGE_FD, IMAGE_CONFIG_FILE, record.data, record.len, e);
}

/* From here on only descriptors of plain files are left that lead anywhere else. */
static int enter_rootfs(struct err *e)
{
	close(IMAGE_FD);
	return confine_root("rootfs", e) < 0 || confine_end(e) < 0 ? -1 : 0;
}

static int import(struct job *j, char digest[80], struct err *e)
{
	cleanup(image_config_done) struct image_config c = { .cwd = "/" };
	struct stat st;

	strv_add(&c.env, "PATH=" IMAGE_PATH);
	if (fstat(STDIN_FILENO, &st) == 0 && S_ISREG(st.st_mode))
		j->unpack.total = (uint64_t)st.st_size;
	if (write_config(&c, e) < 0 || enter_rootfs(e) < 0)
		return -1;
	return unpack_tar(&j->unpack, STDIN_FILENO, digest, e);
}

static int unpack_layers(struct job *j, struct layout *l, char digest[80], struct err *e)
{
	if (layout_open(PULL_LAYOUT, l, e) < 0 || write_config(&l->config, e) < 0 ||
	    enter_rootfs(e) < 0)
		return -1;
	j->unpack.total = l->bytes;
	for (size_t i = 0; i < l->count; i++) {
		char got[UNPACK_DIGEST_SIZE];

		if (unpack_layer(&j->unpack, l->layers[i], got, e) < 0)
			return err_wrap(e, "layer %zu", i + 1);
		if (strcmp(got, l->digests[i]) != 0)
			return err_set(e, ERR_INVALID, "layer %zu does not match its digest",
				       i + 1);
	}
	memcpy(digest, l->digest, sizeof(l->digest));
	return 0;
}

static int unpack(struct job *j, char digest[80], struct err *e)
{
	cleanup(layout_close) struct layout l = { 0 };

	if (fchdir(IMAGE_FD) < 0)
		return err_sys(e, errno, "enter the image's directory");
	if (confine_begin(e) < 0 || confine_root(".", e) < 0)
		return -1;
	return j->reference ? unpack_layers(j, &l, digest, e) : import(j, digest, e);
}

/* In a process of its own. It has the last word itself; 0 says that it had. */
static int unpack_and_say(struct job *j)
{
	char digest[80] = "";
	struct err e;

	if (unpack(j, digest, &e) < 0 || rootfs_finish(&e) < 0)
		report_error(&e);
	else
		report_done(digest, j->unpack.bytes);
	return 0;
}

static int run_unpack(struct job *j, struct err *e)
{
	pid_t pid = fork();
	int status;

	if (pid < 0)
		return err_sys(e, errno, "start the unpacker");
	if (pid == 0)
		_exit(unpack_and_say(j));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status != 0)
		return err_set(e, ERR_INVALID, "the image broke its unpacker (status %d)", status);
	return 0;
}

static int run(struct job *j, struct err *e)
{
	struct pull p = {
		.reference = j->reference,
		.insecure = j->insecure,
		.max_bytes = j->unpack.max_bytes,
		.report = &j->report,
	};
	int n;

	if (!j->reference)
		return run_unpack(j, e);
	n = pull_run(&p, IMAGE_FD, e) < 0 ? -1 : run_unpack(j, e);
	if (n < 0) {
		struct err ignored; /* the first trouble is the one to tell */

		(void)!file_remove_tree(IMAGE_FD, PULL_DIR, &ignored);
		return -1;
	}
	return file_remove_tree(IMAGE_FD, PULL_DIR, e);
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
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	if (parse_args(argc, argv, &j, &e) < 0 || run(&j, &e) < 0) {
		fprintf(stderr, "berth-image: %s\n", e.msg);
		report_error(&e);
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* Runs the real berth-image (BERTH_IMAGE) on archives made here. Needs root. */
#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "proto/image.h"
#include "proto/node.h"
#include "test.h"

static char top[] = "image-test-XXXXXX";
static int topfd = -1, imagefd = -1;

/* top/image/rootfs is the target, top/outside must stay as it is. */
static bool setup(void)
{
	struct err e;

	if (geteuid() != 0)
		return false; /* it cannot confine itself */
	CHECK(mkdtemp(top));
	topfd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_OK(file_replace_fast(topfd, "outside", "safe", 4, &e), &e);
	CHECK_OK(dir_open(topfd, "image", 0700, &imagefd, &e), &e);
	CHECK(mkdirat(imagefd, "rootfs", 0755) == 0);
	return true;
}

static void teardown(void)
{
	cleanup(buf_done) struct buf text = buf_make(100);
	struct err e;

	CHECK_OK(file_read(topfd, "outside", &text, &e), &e);
	CHECK_STR(buf_str(&text), "safe");
	CHECK(access("/etc/berth-image-test", F_OK) < 0);
	close(imagefd);
	close(topfd);
	CHECK_OK(file_remove_tree(AT_FDCWD, top, &e), &e);
}

struct tar {
	struct archive *a;
	char path[64];
};

static struct tar tar_begin(int filter)
{
	struct tar t = { .a = archive_write_new() };

	snprintf(t.path, sizeof(t.path), "%s/in.tar", top);
	archive_write_set_format_pax_restricted(t.a);
	CHECK(archive_write_add_filter(t.a, filter) == ARCHIVE_OK);
	CHECK(archive_write_open_filename(t.a, t.path) == ARCHIVE_OK);
	return t;
}

static void tar_add(struct tar *t, const char *path, mode_t mode, const char *target,
		    const char *text)
{
	struct archive_entry *ent = archive_entry_new();

	archive_entry_set_pathname(ent, path);
	archive_entry_set_mode(ent, mode);
	archive_entry_set_size(ent, text ? (la_int64_t)strlen(text) : 0);
	if (S_ISLNK(mode))
		archive_entry_set_symlink(ent, target);
	else if (target)
		archive_entry_set_hardlink(ent, target);
	if (S_ISCHR(mode))
		archive_entry_set_rdev(ent, makedev(1, 3));
	CHECK(archive_write_header(t->a, ent) == ARCHIVE_OK);
	if (text)
		CHECK(archive_write_data(t->a, text, strlen(text)) == (la_ssize_t)strlen(text));
	archive_entry_free(ent);
}

static void tar_end(struct tar *t)
{
	CHECK(archive_write_close(t->a) == ARCHIVE_OK);
	archive_write_free(t->a);
}

struct result {
	struct node_image image;
	bool done;
	struct err e;
};

/* The last record of what it said. */
static struct result understand(const struct buf *said)
{
	struct reader r = reader_make(said->data, said->len);
	struct result result = { 0 };

	while (r.pos < r.end) {
		struct bytes packet = reader_bytes(&r, reader_u32(&r));
		struct node_head head;
		struct err e;

		CHECK(!r.bad && !result.done && result.e.code == ERR_NONE);
		CHECK_OK(node_head_decode(packet, &head, &e), &e);
		CHECK_INT(head.verb, NODE_IMAGE);
		if (head.kind == NODE_ERROR) {
			node_error_decode(&head, &result.e);
			continue;
		}
		CHECK_OK(node_body_decode(&head, &result.image, &e), &e);
		result.done = head.kind == NODE_REPLY;
	}
	CHECK(result.done || result.e.code != ERR_NONE);
	return result;
}

static struct result import(const char *max_bytes)
{
	cleanup(buf_done) struct buf said = buf_make(1 << 20);
	char path[64], chunk[4096];
	int back[2], in;
	ssize_t n;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/in.tar", top);
	in = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(in >= 0 && pipe2(back, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		int image = fcntl(imagefd, F_DUPFD, 100), out = fcntl(back[1], F_DUPFD, 100);

		dup2(in, 0);
		dup2(image, 3);
		dup2(out, 4);
		close(image);
		close(out);
		execl(getenv("BERTH_IMAGE"), "berth-image", "--max-bytes", max_bytes, "import",
		      NULL);
		_exit(127);
	}
	close(back[1]);
	close(in);
	while ((n = read(back[0], chunk, sizeof(chunk))) > 0)
		buf_add(&said, chunk, (size_t)n);
	close(back[0]);
	CHECK(waitpid(pid, NULL, 0) == pid);
	return understand(&said);
}

static mode_t mode_of(const char *path)
{
	struct stat st;
	char full[200];

	snprintf(full, sizeof(full), "rootfs/%s", path);
	return fstatat(imagefd, full, &st, AT_SYMLINK_NOFOLLOW) == 0 ? st.st_mode : 0;
}

TEST(an_image_is_unpacked_as_it_is)
{
	static const int filters[] = { ARCHIVE_FILTER_NONE, ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_XZ,
				       ARCHIVE_FILTER_ZSTD };

	for (size_t i = 0; i < array_len(filters); i++) {
		cleanup(image_config_done) struct image_config c = { 0 };
		cleanup(buf_done) struct buf text = buf_make(IMAGE_CONFIG_MAX);
		struct result r;
		struct tar t;
		struct err e;

		memcpy(top, "image-test-XXXXXX", sizeof(top));
		if (!setup())
			return;
		t = tar_begin(filters[i]);
		tar_add(&t, "./", S_IFDIR | 0755, NULL, NULL);
		tar_add(&t, "./bin/su", S_IFREG | 04755, NULL, "hello");
		tar_add(&t, "./bin/su2", S_IFREG | 04755, "./bin/su", NULL);
		tar_add(&t, "./lib", S_IFLNK | 0777, "usr/lib", NULL);
		tar_add(&t, "./dev", S_IFLNK | 0777, "/etc", NULL);
		tar_add(&t, "./null", S_IFCHR | 0666, NULL, NULL);
		tar_add(&t, "./.berth", S_IFLNK | 0777, "/etc", NULL);
		tar_end(&t);
		r = import("1m");
		CHECK_STR(r.e.msg, "");
		CHECK_INT(r.image.bytes, 5);
		CHECK(strncmp(r.image.digest, "sha256:", 7) == 0 && strlen(r.image.digest) == 71);
		CHECK_INT(mode_of("bin/su"), S_IFREG | 04755);
		CHECK_INT(mode_of("bin/su2"), S_IFREG | 04755);
		CHECK(S_ISLNK(mode_of("lib")));
		CHECK_INT(mode_of("null"), 0);
		CHECK_INT(mode_of("dev"), S_IFDIR | 0755);
		CHECK_INT(mode_of("proc"), S_IFDIR | 0755);
		CHECK_INT(mode_of(".berth"), S_IFDIR | 0755);
		CHECK_INT(mode_of(".berth/init"), S_IFREG | 0755);
		CHECK_INT(mode_of(".berth/sock"), S_IFDIR | 0700);
		CHECK_INT(mode_of("etc/hosts"), S_IFREG | 0644);
		CHECK_OK(file_read(imagefd, IMAGE_CONFIG_FILE, &text, &e), &e);
		CHECK_OK(image_config_decode((struct bytes){ (void *)text.data, text.len }, &c,
					     &e),
			 &e);
		CHECK_STR(c.env.items[0], "PATH=" IMAGE_PATH);
		CHECK_STR(c.cwd, "/");
		teardown();
	}
}

/* One entry, and perhaps one before it; what becomes of the import. */
static struct result import_pair(const char *link, const char *to, const char *path, mode_t mode,
				 const char *target)
{
	struct result r = { .e.code = ERR_INVALID, .e.msg = "(not root)" };
	struct tar t;

	if (!setup())
		return r;
	t = tar_begin(ARCHIVE_FILTER_NONE);
	if (link)
		tar_add(&t, link, S_IFLNK | 0777, to, NULL);
	tar_add(&t, path, mode, target, target ? NULL : "evil");
	tar_end(&t);
	r = import("1m");
	teardown();
	return r;
}

static void check_refused(struct result r, const char *part)
{
	CHECK_INT(r.e.code, ERR_INVALID);
	if (geteuid() == 0 && !strstr(r.e.msg, part))
		test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", r.e.msg, part);
}

TEST(a_path_upwards_is_refused)
{
	check_refused(import_pair(NULL, NULL, "../outside", S_IFREG | 0644, NULL), "'..'");
}

TEST(an_absolute_path_is_refused)
{
	check_refused(import_pair(NULL, NULL, "/etc/berth-image-test", S_IFREG | 0644, NULL),
		      "absolute");
}

TEST(nothing_is_written_through_a_link)
{
	check_refused(import_pair("etc", "/etc", "etc/berth-image-test", S_IFREG | 0644, NULL),
		      "symlink");
}

TEST(nothing_is_written_through_a_link_upwards)
{
	check_refused(import_pair("up", "../..", "up/outside", S_IFREG | 0644, NULL), "symlink");
}

TEST(a_hard_link_out_is_refused)
{
	check_refused(import_pair(NULL, NULL, "x", S_IFREG | 0644, "../../outside"),
		      "hard link out of the image");
}

TEST(a_bomb_ends_at_the_limit)
{
	static char big[300000];
	struct result r;
	struct tar t;

	if (!setup())
		return;
	memset(big, 'x', sizeof(big) - 1);
	t = tar_begin(ARCHIVE_FILTER_GZIP);
	for (int i = 0; i < 10; i++)
		tar_add(&t, "big", S_IFREG | 0644, NULL, big);
	tar_end(&t);
	r = import("1m");
	CHECK_INT(r.e.code, ERR_TOO_LARGE);
	CHECK_STR(r.e.msg, "the image holds more than the 1048576 bytes it may");
	teardown();
}

TEST(many_links_end_at_the_limit_as_well)
{
	static const struct {
		mode_t mode;
		const char *target;
	} rows[] = {
		{ S_IFLNK | 0777, "/a/target/of/some/length" },
		{ S_IFREG | 0644, "0" }, /* hard */
		{ S_IFREG | 0644, NULL },
		{ S_IFDIR | 0755, NULL },
	};

	if (!setup())
		return;
	for (size_t k = 0; k < array_len(rows); k++) {
		struct tar t = tar_begin(ARCHIVE_FILTER_GZIP);

		tar_add(&t, "0", S_IFREG | 0644, NULL, "");
		for (int i = 1; i < 3000; i++) {
			char name[16];

			snprintf(name, sizeof(name), "%zu-%d", k, i);
			tar_add(&t, name, rows[k].mode, rows[k].target, "");
		}
		tar_end(&t);
		CHECK_INT(import("1m").e.code, ERR_TOO_LARGE);
	}
	teardown();
}

/* 2 MB of such an archive took 321 MB of memory. */
TEST(paths_of_directories_have_a_limit_together)
{
	char path[1000] = "";
	struct result r;
	struct tar t;

	if (!setup())
		return;
	memset(path, 'a', sizeof(path) - 1);
	for (size_t at = 200; at < sizeof(path); at += 200)
		path[at] = '/';
	t = tar_begin(ARCHIVE_FILTER_GZIP);
	for (int i = 0; i < 30; i++)
		tar_add(&t, path, S_IFDIR | 0755, NULL, NULL);
	tar_end(&t);
	r = import("1m");
	CHECK_INT(r.e.code, ERR_TOO_LARGE);
	CHECK_STR(r.e.msg, "the image's directories have too long paths");
	teardown();
}

TEST(half_an_archive_is_refused)
{
	static char big[300000];
	struct result r;
	struct tar t;

	if (!setup())
		return;
	for (size_t i = 0; i < sizeof(big) - 1; i++)
		big[i] = (char)('a' + rand() % 26);
	t = tar_begin(ARCHIVE_FILTER_GZIP);
	tar_add(&t, "big", S_IFREG | 0644, NULL, big);
	tar_end(&t);
	CHECK(truncate(t.path, 100000) == 0);
	r = import("1m");
	check_refused(r, "the archive cannot be read: truncated gzip input");
	teardown();
}

TEST(what_is_no_archive_is_refused)
{
	struct err e;

	if (!setup())
		return;
	CHECK_OK(file_replace_fast(topfd, "in.tar", "", 0, &e), &e);
	check_refused(import("1m"), "the archive is empty");
	CHECK_OK(file_replace_fast(topfd, "in.tar", "hello world", 11, &e), &e);
	check_refused(import("1m"), "the archive cannot be read: ");
	teardown();
}

#include "lib/tar.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/pack.h"
#include "lib/unpack.h"
#include "test.h"

static int seen_count;
static struct tar_entry seen[8];
static struct buf contents;

static int on_entry(void *data, const struct tar_entry *x, struct err *e)
{
	(void)data, (void)e;
	seen[seen_count++ % 8] = *x;
	return 0;
}

static int on_bytes(void *data, const void *bytes, size_t len, struct err *e)
{
	(void)data, (void)e;
	buf_add(&contents, bytes, len);
	return 0;
}

static int on_entry_end(void *data, struct err *e)
{
	(void)data, (void)e;
	return 0;
}

static const struct tar_events events = { on_entry, on_bytes, on_entry_end };

static int read_all(const struct buf *b, struct err *e)
{
	struct tar_reader r;
	int n;

	seen_count = 0;
	contents = buf_make(1 << 20);
	tar_reader_init(&r, &events, NULL);
	n = tar_reader_feed(&r, b->data, b->len, e);
	if (n == 0)
		n = tar_reader_end(&r, e);
	tar_reader_done(&r);
	return n;
}

TEST(what_is_written_is_read)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct tar_entry x = { .type = TAR_FILE, .mode = 0755, .size = 5, .mtime = 12 };
	struct tar_entry l = { .type = TAR_SYMLINK, .mode = 0777 };
	struct err e;

	memset(x.path, 'p', 300);
	x.path[150] = '/';
	memcpy(l.path, "link", 5);
	memset(l.target, 't', 200);
	tar_add_entry(&b, &x);
	buf_adds(&b, "hello");
	tar_add_padding(&b, 5);
	tar_add_entry(&b, &l);
	tar_add_end(&b);
	CHECK_INT(b.len % TAR_BLOCK, 0);
	CHECK_INT(read_all(&b, &e), 0);
	CHECK_INT(seen_count, 2);
	CHECK_STR(seen[0].path, x.path);
	CHECK_INT(seen[0].mode, 0755);
	CHECK_INT(seen[0].mtime, 12);
	CHECK_STR(buf_str(&contents), "hello");
	CHECK_STR(seen[1].target, l.target);
	CHECK_INT(seen[1].type, TAR_SYMLINK);
	buf_done(&contents);
}

TEST(a_cut_or_damaged_archive_is_refused)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct tar_entry x = { .type = TAR_FILE, .size = 5, .path = "f" };
	struct err e;

	tar_add_entry(&b, &x);
	buf_adds(&b, "hello");
	tar_add_padding(&b, 5);
	CHECK_INT(read_all(&b, &e), -1);
	buf_done(&contents);
	tar_add_end(&b);
	CHECK_INT(read_all(&b, &e), 0);
	buf_done(&contents);
	b.data[3] ^= 1;
	CHECK_INT(read_all(&b, &e), -1);
	CHECK_INT(e.code, ERR_INVALID);
	buf_done(&contents);
}

TEST(paths_stay_below)
{
	char out[TAR_PATH_SIZE];
	struct err e;

	CHECK_INT(tar_path_below("/a//./b/", out, &e), 0);
	CHECK_STR(out, "a/b");
	CHECK_INT(tar_path_below("./", out, &e), 0);
	CHECK_STR(out, "");
	CHECK_INT(tar_path_below("a/..b/...", out, &e), 0);
	CHECK_STR(out, "a/..b/...");
	CHECK_INT(tar_path_below("a/../b", out, &e), -1);
	CHECK_INT(tar_path_below("..", out, &e), -1);
}

/* An archive of these entries, unpacked below a directory of its own. */
static int unpack_these(const char *top, const struct tar_entry *x, size_t count, struct err *e)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	int dir = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n;
	struct unpack *u = xcalloc(1, sizeof(*u));

	for (size_t i = 0; i < count; i++) {
		tar_add_entry(&b, &x[i]);
		for (uint64_t k = 0; k < x[i].size; k++)
			buf_adds(&b, "x");
		tar_add_padding(&b, x[i].size);
	}
	tar_add_end(&b);
	unpack_init(u, dir, 0777);
	n = unpack_feed(u, b.data, b.len, e);
	if (n == 0)
		n = unpack_end(u, e);
	unpack_done(u);
	free(u);
	close(dir);
	return n;
}

TEST(no_link_leads_out)
{
	char top[] = "/tmp/tar-test-XXXXXX", in[64], out[64], path[128];
	struct tar_entry links[2] = {
		{ .type = TAR_SYMLINK, .mode = 0777, .path = "l" },
		{ .type = TAR_FILE, .mode = 0644, .size = 3, .path = "l/f" },
	};
	struct tar_entry over[2] = {
		{ .type = TAR_SYMLINK, .mode = 0777, .path = "s" },
		{ .type = TAR_FILE, .mode = 04755, .size = 3, .path = "s" },
	};
	struct tar_entry hard = { .type = TAR_HARDLINK, .path = "h", .target = "../out/x" };
	struct tar_entry node = { .type = TAR_CHARACTER, .path = "n" };
	struct stat st;
	struct err e;

	CHECK(mkdtemp(top));
	snprintf(in, sizeof(in), "%s/in", top);
	snprintf(out, sizeof(out), "%s/out", top);
	CHECK_INT(mkdir(in, 0700) + mkdir(out, 0700), 0);
	snprintf(links[0].target, sizeof(links[0].target), "%s", out);
	CHECK_INT(unpack_these(in, links, 2, &e), -1);
	CHECK_STR(e.reason, "not_a_directory");
	snprintf(path, sizeof(path), "%s/f", out);
	CHECK_INT(lstat(path, &st), -1);
	/* A file takes the place of a link; what the link leads to stays. */
	snprintf(over[0].target, sizeof(over[0].target), "%s", path);
	CHECK_INT(unpack_these(in, over, 2, &e), 0);
	CHECK_INT(lstat(path, &st), -1);
	snprintf(path, sizeof(path), "%s/s", in);
	CHECK_INT(lstat(path, &st), 0);
	CHECK_INT(st.st_mode & 07777, 0755);
	CHECK_INT(unpack_these(in, &hard, 1, &e), -1);
	CHECK_INT(unpack_these(in, &node, 1, &e), -1);
	CHECK_STR(e.reason, "not_a_file");
	snprintf(path, sizeof(path), "rm -rf %s", top);
	CHECK_INT(system(path), 0);
}

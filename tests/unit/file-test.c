#include "lib/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

/* A directory of the test's own, below the one meson starts us in. */
static int scratch(void)
{
	char name[] = "file-test-XXXXXX";
	int fd;

	CHECK(mkdtemp(name));
	fd = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

TEST(a_replaced_file_is_the_new_one_and_nothing_is_left)
{
	cleanup(buf_done) struct buf b = buf_make(64);
	int dir = scratch();
	struct err e;

	CHECK_OK(file_replace(dir, "f", "old", 3, &e), &e);
	CHECK_OK(file_replace(dir, "f", "newer", 5, &e), &e);
	CHECK_OK(file_read(dir, "f", &b, &e), &e);
	CHECK_STR(b.data, "newer");
	CHECK(faccessat(dir, ".f.new", F_OK, 0) < 0);
}

TEST(a_missing_file_is_not_found_and_a_long_one_too_large)
{
	cleanup(buf_done) struct buf b = buf_make(4);
	int dir = scratch();
	struct err e;

	CHECK_ERR(file_read(dir, "no", &b, &e), &e, ERR_NOT_FOUND);
	CHECK_OK(file_replace_fast(dir, "f", "12345", 5, &e), &e);
	CHECK_ERR(file_read(dir, "f", &b, &e), &e, ERR_TOO_LARGE);
}

TEST(a_tree_is_removed_and_a_link_is_not_followed)
{
	int dir = scratch(), sub = -1;
	struct err e;

	CHECK_OK(file_replace_fast(dir, "keep", "x", 1, &e), &e);
	CHECK_OK(dir_open(dir, "tree", 0755, &sub, &e), &e);
	CHECK(symlinkat("../keep", sub, "link") == 0);
	CHECK(symlinkat("..", sub, "up") == 0);
	CHECK(mkdirat(sub, "deep", 0755) == 0);
	CHECK_OK(file_remove_tree(dir, "tree", &e), &e);
	CHECK(faccessat(dir, "tree", F_OK, 0) < 0);
	CHECK(faccessat(dir, "keep", F_OK, 0) == 0);
	CHECK_OK(file_remove_tree(dir, "tree", &e), &e);
}

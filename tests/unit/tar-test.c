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

/* ---- archives by hand ---- */

/* A head as it stands in an archive; the checksum is made last. */
struct raw {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100];
	char magic[6], version[2], owners[64], devices[16], prefix[155], rest[12];
};

static struct raw raw_head(const char *name, char type, const char *size)
{
	struct raw h = { .type = type };

	snprintf(h.name, sizeof(h.name), "%s", name);
	memcpy(h.mode, "0000644", 8);
	memcpy(h.uid, "0000021", 8);
	memcpy(h.gid, "   31 ", 7);
	snprintf(h.size, sizeof(h.size), "%s", size);
	memcpy(h.mtime, "00000000017", 12);
	memcpy(h.magic, "ustar", 6);
	return h;
}

static void add_raw(struct buf *out, struct raw *h)
{
	unsigned sum = 0;

	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((uint8_t *)h)[i];
	snprintf(h->sum, 7, "%06o", sum);
	buf_add(out, h, sizeof(*h));
}

/* A head, and bytes that are filled up to a block. */
static void add_block(struct buf *out, const char *name, char type, const void *bytes, size_t len)
{
	struct raw h;
	char size[12];

	snprintf(size, sizeof(size), "%011zo", len);
	h = raw_head(name, type, size);
	add_raw(out, &h);
	buf_add(out, bytes, len);
	tar_add_padding(out, len);
}

static int read_and_forget(const struct buf *b, struct err *e)
{
	int n = read_all(b, e);

	buf_done(&contents);
	return n;
}

/* What these pax records make of a file called f that says it is empty. */
static int with_records(const char *records, size_t len, struct err *e)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);

	add_block(&b, "pax", 'x', records, len);
	add_block(&b, "f", '2', "", 0);
	tar_add_end(&b);
	return read_and_forget(&b, e);
}

TEST(a_head_is_written_so)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct tar_entry x = { .type = TAR_SYMLINK, .mode = 0104755, .uid = 17, .gid = 9 };
	const struct raw *h;
	struct raw again;

	x.size = 8;
	x.mtime = 64;
	memcpy(x.path, "p", 2);
	memcpy(x.target, "t", 2);
	tar_add_entry(&b, &x);
	CHECK_INT(b.len, TAR_BLOCK);
	h = (const struct raw *)(const void *)b.data;
	CHECK_STR(h->name, "p");
	CHECK_STR(h->mode, "0004755");
	CHECK_STR(h->uid, "0000021");
	CHECK_STR(h->gid, "0000011");
	CHECK_STR(h->size, "00000000010");
	CHECK_STR(h->mtime, "00000000100");
	CHECK_INT(h->type, '2');
	CHECK_STR(h->target, "t");
	CHECK(memcmp(h->magic, "ustar\0", 6) == 0 && memcmp(h->version, "00", 2) == 0);
	again = *h;
	buf_clear(&b);
	add_raw(&b, &again);
	again.sum[7] = ' ';
	CHECK(memcmp(b.data + offsetof(struct raw, sum), again.sum, 7) == 0);
	buf_clear(&b);
	tar_add_end(&b);
	CHECK_INT(b.len, 2 * TAR_BLOCK);
}

TEST(a_name_that_fits_needs_no_record)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct tar_entry x = { .type = TAR_SYMLINK };

	memset(x.path, 'p', 100);
	memset(x.target, 't', 100);
	tar_add_entry(&b, &x);
	CHECK_INT(b.len, TAR_BLOCK);
	x.target[100] = 't';
	buf_clear(&b);
	tar_add_entry(&b, &x);
	CHECK_INT(b.len, 3 * TAR_BLOCK);
	CHECK(strncmp(b.data + TAR_BLOCK, "115 linkpath=ttt", 16) == 0);
	x.target[100] = '\0';
	x.path[100] = 'p';
	buf_clear(&b);
	tar_add_entry(&b, &x);
	CHECK(strncmp(b.data + TAR_BLOCK, "111 path=ppp", 12) == 0);
}

TEST(a_size_that_does_not_fit_is_a_record)
{
	struct tar_entry x = { .type = TAR_FILE, .path = "f" };
	struct err e;

	for (int more = 0; more < 2; more++) {
		cleanup(buf_done) struct buf b = buf_make(1 << 20);

		x.size = 077777777777ULL + (uint64_t)more;
		tar_add_entry(&b, &x);
		CHECK_INT(b.len, more ? 3 * TAR_BLOCK : TAR_BLOCK);
		CHECK_INT(read_and_forget(&b, &e), -1); /* its bytes are not there */
		CHECK_INT(seen_count, 1);
		CHECK(seen[0].size == x.size);
	}
}

TEST(numbers_are_octal_or_of_bytes)
{
	static const struct {
		const char *size;
		size_t len;
		uint64_t want;
		const char *says; /* why it is refused */
	} rows[] = {
		{ "00000000000", 12, 0, NULL },
		{ "  17 ", 6, 15, NULL },
		{ "00000000777 ", 12, 511, NULL },
		{ "\x80\0\0\0\0\0\0\0\0\0\x01\x02", 12, 258, NULL },
		{ "\x80\0\0\0\x3f\xff\xff\xff\xff\xff\xff\xff", 12, (1ULL << 62) - 1, NULL },
		{ "\x80\0\0\0\x40\0\0\0\0\0\0\0", 12, 0, "too large" },
		{ "\x80\0\0\x40\0\0\0\0\0\0\0\0", 12, 0, "too large" },
		{ "\xff\0\0\0\0\0\0\0\0\0\0\0", 12, 0, "too large" },
		{ "8", 2, 0, "not octal" },
		{ "1x", 3, 0, "not octal" },
		{ "-1", 3, 0, "not octal" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(buf_done) struct buf b = buf_make(1 << 20);
		struct raw h = raw_head("f", '0', "");
		struct err e = { 0 };

		memcpy(h.size, rows[i].size, rows[i].len);
		add_raw(&b, &h);
		if (rows[i].want == 0)
			tar_add_end(&b);
		CHECK_INT(read_and_forget(&b, &e), rows[i].want || rows[i].says ? -1 : 0);
		CHECK_INT(seen_count, rows[i].says ? 0 : 1);
		if (rows[i].says)
			CHECK(strstr(e.msg, rows[i].says) && e.code == ERR_INVALID);
		else
			CHECK(seen[0].size == rows[i].want);
	}
}

TEST(every_number_of_a_head_is_read_and_checked)
{
	static const size_t fields[] = { offsetof(struct raw, mode), offsetof(struct raw, uid),
					 offsetof(struct raw, gid), offsetof(struct raw, size),
					 offsetof(struct raw, mtime) };
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct raw h = raw_head("f", '0', "0");
	struct err e;

	memcpy(h.mode, "0177777", 8);
	add_raw(&b, &h);
	tar_add_end(&b);
	CHECK_OK(read_and_forget(&b, &e), &e);
	CHECK_INT(seen[0].mode, 07777);
	CHECK_INT(seen[0].uid, 021);
	CHECK_INT(seen[0].gid, 031);
	CHECK_INT(seen[0].mtime, 017);
	for (size_t i = 0; i < array_len(fields); i++) {
		h = raw_head("f", '0', "0");
		((char *)&h)[fields[i]] = '9';
		buf_clear(&b);
		add_raw(&b, &h);
		tar_add_end(&b);
		CHECK_ERR(read_and_forget(&b, &e), &e, ERR_INVALID);
	}
	h = raw_head("f", '0', "0");
	buf_clear(&b);
	add_raw(&b, &h);
	b.data[offsetof(struct raw, sum)] = 'x';
	tar_add_end(&b);
	CHECK_ERR(read_and_forget(&b, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "not octal"));
}

TEST(kinds_are_known_or_refused)
{
	static const struct {
		char type, want; /* 0: refused */
		const char *name;
	} rows[] = {
		{ '\0', '0', "f" },
		{ '7', '0', "f" },
		{ '0', '0', "f" },
		{ '1', '1', "f" },
		{ '2', '2', "f/" },
		{ '6', '6', "f" },
		{ '0', '5', "d/" },
		{ '\0', '5', "d/" },
		{ '5', '5', "d" },
		{ '8', 0, "f" },
		{ '/', 0, "f" },
		{ 'V', 0, "f" },
		{ '0', '0', "" },
		{ '\x01', 0, "f" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		cleanup(buf_done) struct buf b = buf_make(1 << 20);
		struct err e;

		add_block(&b, rows[i].name, rows[i].type, "", 0);
		tar_add_end(&b);
		if (!rows[i].want) {
			CHECK_ERR(read_and_forget(&b, &e), &e, ERR_INVALID);
			CHECK_INT(seen_count, 0);
			continue;
		}
		CHECK_OK(read_and_forget(&b, &e), &e);
		CHECK_INT(seen[0].type, rows[i].want);
		CHECK_STR(seen[0].path, rows[i].name);
	}
}

/* Only files have bytes: what another kind says of its size is not believed. */
TEST(only_files_have_bytes)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct raw h = raw_head("l", '2', "00000000777");
	struct err e;

	add_raw(&b, &h);
	add_block(&b, "f", '0', "abc", 3);
	tar_add_end(&b);
	CHECK_OK(read_all(&b, &e), &e);
	CHECK_INT(seen_count, 2);
	CHECK_INT(seen[0].size, 0);
	CHECK_STR(buf_str(&contents), "abc");
	buf_done(&contents);
}

TEST(a_prefix_counts_where_the_format_has_one)
{
	static const char magics[][7] = { "ustar", "ustar " };
	static const char *const want[] = { "dir/f", "f" };
	struct err e;

	for (size_t i = 0; i < array_len(magics); i++) {
		cleanup(buf_done) struct buf b = buf_make(1 << 20);
		struct raw h = raw_head("f", '2', "0");

		memcpy(h.magic, magics[i], 6);
		memcpy(h.prefix, "dir", 4);
		memset(h.target, 't', sizeof(h.target)); /* it has no end of its own */
		add_raw(&b, &h);
		tar_add_end(&b);
		CHECK_OK(read_and_forget(&b, &e), &e);
		CHECK_STR(seen[0].path, want[i]);
		CHECK_INT(strlen(seen[0].target), 100);
	}
}

TEST(long_names_are_of_the_next_entry_alone)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	static const char records[] = "12 path=abc\n16 linkpath=def\n13 mode=0777\n";
	char name[300];
	struct err e;

	memset(name, 'n', sizeof(name));
	name[299] = '\0';
	add_block(&b, "x", 'L', name, 300);
	add_block(&b, "x", 'K', "target", 6);
	add_block(&b, "short", '2', "", 0);
	add_block(&b, "short", '2', "", 0);
	add_block(&b, "pax", 'g', "9 path=g\n", 9);
	add_block(&b, "pax", 'x', records, sizeof(records) - 1);
	add_block(&b, "short", '2', "", 0);
	add_block(&b, "short", '2', "", 0);
	tar_add_end(&b);
	CHECK_OK(read_and_forget(&b, &e), &e);
	CHECK_INT(seen_count, 4);
	CHECK_STR(seen[0].path, name);
	CHECK_STR(seen[0].target, "target");
	CHECK_STR(seen[1].path, "short");
	CHECK_STR(seen[1].target, "");
	CHECK_STR(seen[2].path, "abc");
	CHECK_STR(seen[2].target, "def");
	CHECK_INT(seen[2].mode, 0644);
	CHECK_STR(seen[3].path, "short");
}

TEST(records_are_whole_or_refused)
{
#define RECORDS(text) text, sizeof(text) - 1
	static const struct {
		const char *text;
		size_t len;
		const char *says;
	} bad[] = {
		{ RECORDS("12"), "without a length" },
		{ RECORDS(" path=abc\n"), "wrong length" },
		{ RECORDS("1x path=abc\n"), "wrong length" },
		{ RECORDS("13 path=abc\n"), "wrong length" },
		{ RECORDS("11 path=abc\n"), "wrong length" },
		{ RECORDS("3 \n"), "without =" },
		{ RECORDS("2 \n"), "wrong length" },
		{ RECORDS("0000000000000000012 path=abc\n"), "wrong length" },
		{ RECORDS("12 path+abc\n"), "without =" },
		{ RECORDS("12 path=a\0c\n"), "too long, or none" },
		{ RECORDS("10 size=x\n"), "a size" },
		{ RECORDS("8 size=\n"), "a size" },
		{ RECORDS("28 size=1234567890123456789\n"), "a size" },
	};
	static const struct {
		const char *text;
		size_t len;
		const char *path;
	} good[] = {
		{ RECORDS("12 path=abc\n"), "abc" },
		{ RECORDS("12 paths=ab\n"), "f" },
		{ RECORDS("12 pith=abc\n"), "f" },
		{ RECORDS("4 =\n"), "f" },
		{ RECORDS("000000000000000031 path=123456\n"), "123456" },
		{ RECORDS("12 path=abc\n8 path=\n"), "" },
		{ RECORDS("8 sizx=\n"), "f" },
		{ RECORDS("15 linkpaht=ab\n"), "f" },
	};
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++) {
		CHECK_ERR(with_records(bad[i].text, bad[i].len, &e), &e, ERR_INVALID);
		if (!strstr(e.msg, bad[i].says))
			test_fail(__FILE__, __LINE__, "row %zu: %s", i, e.msg);
	}
	for (size_t i = 0; i < array_len(good); i++) {
		if (with_records(good[i].text, good[i].len, &e) < 0)
			test_fail(__FILE__, __LINE__, "row %zu: %s", i, e.msg);
		CHECK_STR(seen[0].path, good[i].path);
		CHECK_STR(seen[0].target, "");
	}
}

TEST(a_record_may_say_the_size)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct raw h = raw_head("f", '0', "0");
	struct err e;

	add_block(&b, "pax", 'x', "10 size=3\n", 10);
	add_raw(&b, &h);
	buf_adds(&b, "abc");
	tar_add_padding(&b, 3);
	add_block(&b, "g", '0', "", 0);
	tar_add_end(&b);
	CHECK_OK(read_all(&b, &e), &e);
	CHECK_STR(buf_str(&contents), "abc");
	CHECK_INT(seen[0].size, 3);
	CHECK_INT(seen[1].size, 0);
	buf_done(&contents);
}

TEST(names_and_records_have_a_longest)
{
	static char text[64 * 1024 + 1];
	struct err e;

	memset(text, 'n', sizeof(text));
	for (int more = 0; more < 2; more++) {
		cleanup(buf_done) struct buf b = buf_make(1 << 20);

		add_block(&b, "x", 'L', text, TAR_PATH_SIZE - 1 + more);
		add_block(&b, "f", '2', "", 0);
		tar_add_end(&b);
		CHECK_INT(read_and_forget(&b, &e), -more);
		buf_clear(&b);
		/* What is not used may be as long as a record at most. */
		add_block(&b, "x", 'g', text, sizeof(text) - 1 + more);
		add_block(&b, "f", '2', "", 0);
		tar_add_end(&b);
		CHECK_INT(read_and_forget(&b, &e), -more);
		if (more)
			CHECK(strstr(e.msg, "too long"));
	}
}

static int fail_at; /* the call that fails */

static int count_down(struct err *e)
{
	return fail_at-- == 0 ? err_set(e, ERR_LIMIT, "enough") : 0;
}

static int failing_entry(void *data, const struct tar_entry *x, struct err *e)
{
	(void)data, (void)x;
	return count_down(e);
}

static int failing_bytes(void *data, const void *bytes, size_t len, struct err *e)
{
	(void)data, (void)bytes, (void)len;
	return count_down(e);
}

static int failing_end(void *data, struct err *e)
{
	(void)data;
	return count_down(e);
}

TEST(what_the_receiver_refuses_ends_the_reading)
{
	static const struct tar_events failing = { failing_entry, failing_bytes, failing_end };
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct err e;

	add_block(&b, "f", '0', "abc", 3);
	tar_add_end(&b);
	for (int i = 0; i < 4; i++) {
		struct tar_reader r;

		fail_at = i;
		tar_reader_init(&r, &failing, NULL);
		if (i < 3)
			CHECK_ERR(tar_reader_feed(&r, b.data, b.len, &e), &e, ERR_LIMIT);
		else
			CHECK_OK(tar_reader_feed(&r, b.data, b.len, &e), &e);
		tar_reader_done(&r);
	}
}

/* However it is cut, and whatever follows its end. */
TEST(the_pieces_make_no_difference)
{
	cleanup(buf_done) struct buf b = buf_make(1 << 20);
	struct err e;

	add_block(&b, "pax", 'x', "12 path=abc\n", 12);
	add_block(&b, "f", '0', "hello", 5);
	add_block(&b, "g", '2', "", 0);
	tar_add_end(&b);
	buf_adds(&b, "what follows is not read");
	for (size_t piece = 1; piece < 1100; piece += 61) {
		struct tar_reader r;

		seen_count = 0;
		contents = buf_make(1 << 20);
		tar_reader_init(&r, &events, NULL);
		for (size_t at = 0; at < b.len; at += piece) {
			size_t n = b.len - at < piece ? b.len - at : piece;

			CHECK_OK(tar_reader_feed(&r, b.data + at, n, &e), &e);
		}
		CHECK_OK(tar_reader_end(&r, &e), &e);
		tar_reader_done(&r);
		CHECK_INT(seen_count, 2);
		CHECK_STR(seen[0].path, "abc");
		CHECK_STR(buf_str(&contents), "hello");
		buf_done(&contents);
	}
}

TEST(a_path_below_has_a_longest)
{
	char path[TAR_PATH_SIZE + 2], out[TAR_PATH_SIZE];
	struct err e;

	memset(path, 'a', sizeof(path));
	path[100] = '/';
	path[TAR_PATH_SIZE - 1] = '\0';
	CHECK_OK(tar_path_below(path, out, &e), &e);
	CHECK_STR(out, path);
	path[TAR_PATH_SIZE - 1] = 'a';
	path[TAR_PATH_SIZE] = '\0';
	CHECK_ERR(tar_path_below(path, out, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "too long"));
	CHECK_ERR(tar_path_below("a/../b", out, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "leads out: a/../b"));
	CHECK_OK(tar_path_below(".a/b.", out, &e), &e);
	CHECK_STR(out, ".a/b.");
}

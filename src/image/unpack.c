#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"

#define CHUNK         (256UL << 10)
#define ENTRY_BYTES   512 /* of an entry, besides its name and target */
#define DIR_PART      64  /* of all bytes: 320 MiB of 20 GiB */
#define WHITEOUT      ".wh."
#define OPAQUE        ".wh..wh..opq"
#define EXTRACT_FLAGS (ARCHIVE_EXTRACT_OWNER | ARCHIVE_EXTRACT_PERM | ARCHIVE_EXTRACT_TIME | \
		       ARCHIVE_EXTRACT_SPARSE | ARCHIVE_EXTRACT_SECURE_SYMLINKS | \
		       ARCHIVE_EXTRACT_SECURE_NODOTDOT | ARCHIVE_EXTRACT_SECURE_NOABSOLUTEPATHS)

/* The bytes of one input, counted and hashed as libarchive asks for them. */
struct source {
	int fd;
	struct unpack *unpack; /* NULL: a second look, not counted */
	uint64_t read;
	EVP_MD_CTX *hash;
	char *chunk;
};

static void source_close(struct source *s)
{
	EVP_MD_CTX_free(s->hash);
	free(s->chunk);
}

static void source_open(struct source *s, int fd, struct unpack *u)
{
	*s = (struct source){ .fd = fd, .unpack = u, .hash = EVP_MD_CTX_new() };
	s->chunk = xcalloc(1, CHUNK);
	if (!s->hash || EVP_DigestInit_ex(s->hash, EVP_sha256(), NULL) != 1)
		abort(); /* only for lack of memory */
}

static ssize_t source_read(struct source *s)
{
	ssize_t n;

	do
		n = read(s->fd, s->chunk, CHUNK);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n;
	s->read += (uint64_t)n;
	EVP_DigestUpdate(s->hash, s->chunk, (size_t)n);
	if (s->unpack) {
		s->unpack->read += (uint64_t)n;
		report_progress(s->unpack->report, "unpacking", s->unpack->read, s->unpack->total);
	}
	return n;
}

static la_ssize_t on_read(struct archive *a, void *data, const void **block)
{
	struct source *s = data;
	ssize_t n = source_read(s);

	*block = s->chunk;
	if (n < 0)
		archive_set_error(a, errno, "%s", strerror(errno));
	return n;
}

/* What follows the archive's own end belongs to the digest as well. */
static int source_finish(struct source *s, char digest[UNPACK_DIGEST_SIZE], struct err *e)
{
	unsigned char hash[32];
	ssize_t n;

	while ((n = source_read(s)) > 0)
		;
	if (n < 0)
		return err_sys(e, errno, "read the archive");
	EVP_DigestFinal_ex(s->hash, hash, NULL);
	snprintf(digest, UNPACK_DIGEST_SIZE, "sha256:");
	str_hex(digest + 7, hash, sizeof(hash));
	return 0;
}

static void reader_freep(struct archive **a)
{
	archive_read_free(*a);
}

static void writer_freep(struct archive **a)
{
	archive_write_free(*a);
}

static int unreadable(struct archive *a, const struct source *s, struct err *e)
{
	const char *why = archive_error_string(a);

	if (s->read == 0)
		return err_set(e, ERR_INVALID, "the archive is empty");
	return err_set(e, ERR_INVALID,
		       "the archive cannot be read: %.120s (it must be a tar of a root filesystem, "
		       "or what 'docker save' writes)",
		       why ? why : "unknown reason");
}

static struct archive *reader_open(struct source *s, struct err *e)
{
	struct archive *a = archive_read_new();

	if (!a)
		abort();
	archive_read_support_filter_gzip(a);
	archive_read_support_filter_xz(a);
	archive_read_support_filter_zstd(a);
	archive_read_support_format_tar(a);
	if (archive_read_open(a, s, NULL, on_read, NULL) == ARCHIVE_OK)
		return a;
	unreadable(a, s, e);
	archive_read_free(a);
	return NULL;
}

/* 1: an entry; 0: the end; -1: trouble. */
static int next_entry(struct archive *a, const struct source *s, struct archive_entry **ret,
		      struct err *e)
{
	int n = archive_read_next_header(a, ret);

	if (n == ARCHIVE_EOF)
		return s->read == 0 ? unreadable(a, s, e) : 0;
	if (n < ARCHIVE_WARN)
		return unreadable(a, s, e);
	if (!archive_entry_pathname(*ret))
		return err_set(e, ERR_INVALID, "the archive has an entry without a name");
	return 1;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_whiteout(struct archive_entry *entry)
{
	return str_starts(base_name(archive_entry_pathname(entry)), WHITEOUT);
}

static bool has_dotdot(const char *path)
{
	for (const char *p = path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, "..", 2) == 0 && (p[2] == '/' || !p[2]))
			return true;
	}
	return false;
}

/* Devices and sockets are the host's to give: an image brings none. */
static bool is_wanted(struct archive_entry *entry)
{
	mode_t type = archive_entry_filetype(entry);

	return archive_entry_hardlink(entry) || type == AE_IFREG || type == AE_IFDIR ||
	       type == AE_IFLNK || type == AE_IFIFO;
}

static bool is_full(struct archive *to)
{
	int why = archive_errno(to);

	return why == ENOSPC || why == EDQUOT;
}

static int too_large(const struct unpack *u, struct err *e)
{
	return err_set(e, ERR_TOO_LARGE, "the image holds more than the %llu bytes it may",
		       (unsigned long long)u->max_bytes);
}

static uint64_t bytes_left(const struct unpack *u)
{
	return u->max_bytes - u->bytes - u->entry_bytes;
}

/* Links and empty files have no bytes, and a hundred thousand of them are half a gigabyte. */
static uint64_t cost_of(struct archive_entry *entry)
{
	const char *hard = archive_entry_hardlink(entry), *soft = archive_entry_symlink(entry);

	return ENTRY_BYTES + strlen(archive_entry_pathname(entry)) + (hard ? strlen(hard) : 0) +
	       (soft ? strlen(soft) : 0);
}

static int count_entry(struct unpack *u, struct archive_entry *entry, struct err *e)
{
	if (++u->entries > UNPACK_ENTRIES_MAX)
		return err_set(e, ERR_TOO_LARGE, "the image has more than %d files",
			       UNPACK_ENTRIES_MAX);
	if (cost_of(entry) > bytes_left(u))
		return too_large(u, e);
	u->entry_bytes += cost_of(entry);
	/* libarchive keeps a directory's path until its mode and times can be set. */
	if (archive_entry_filetype(entry) == AE_IFDIR)
		u->dir_bytes += strlen(archive_entry_pathname(entry));
	if (u->dir_bytes > u->max_bytes / DIR_PART)
		return err_set(e, ERR_TOO_LARGE, "the image's directories have too long paths");
	return 0;
}

static int copy_data(struct unpack *u, struct archive *from, struct archive *to,
		     const struct source *s, struct err *e)
{
	const void *block;
	la_int64_t offset;
	size_t len;
	int n;

	while ((n = archive_read_data_block(from, &block, &len, &offset)) == ARCHIVE_OK) {
		if (len > bytes_left(u))
			return too_large(u, e);
		u->bytes += len;
		if (archive_write_data_block(to, block, len, offset) < ARCHIVE_WARN)
			return err_set(e, is_full(to) ? ERR_LIMIT : ERR_INTERNAL, "write: %.200s",
				       archive_error_string(to));
	}
	return n == ARCHIVE_EOF ? 0 : unreadable(from, s, e);
}

static int refuse_entry(struct archive *to, const char *path, struct err *e)
{
	int why = archive_errno(to);
	bool disk = why == EIO || why == EROFS;

	return err_set(e, is_full(to) ? ERR_LIMIT : disk ? ERR_INTERNAL
							 : ERR_INVALID,
		       "\"%.100s\" cannot be unpacked: %.150s", path, archive_error_string(to));
}

static size_t depth_of(const char *path)
{
	size_t n = 1;

	for (const char *p = path; *p; p++)
		n += *p == '/';
	return n;
}

static int put_entry(struct unpack *u, struct archive *from, struct archive *to,
		     const struct source *s, struct archive_entry *entry, struct err *e)
{
	const char *path = archive_entry_pathname(entry);
	const char *target = archive_entry_hardlink(entry);

	if (!is_wanted(entry) || is_whiteout(entry))
		return 0;
	if (u->depth_max && depth_of(path) > u->depth_max)
		return err_set(e, ERR_INVALID, "\"%.100s\" lies too deep for an image archive",
			       path);
	if (target && (target[0] == '/' || has_dotdot(target)))
		return err_set(e, ERR_INVALID, "\"%.100s\" is a hard link out of the image: %.100s",
			       path, target);
	if (archive_entry_size(entry) > 0 &&
	    (uint64_t)archive_entry_size(entry) > bytes_left(u))
		return too_large(u, e);   /* before a byte of it is written */
	archive_entry_xattr_clear(entry); /* file capabilities, above all */
	archive_entry_acl_clear(entry);
	if (archive_write_header(to, entry) < ARCHIVE_WARN)
		return refuse_entry(to, path, e);
	if (copy_data(u, from, to, s, e) < 0)
		return -1;
	return archive_write_finish_entry(to) < ARCHIVE_WARN ? refuse_entry(to, path, e) : 0;
}

int unpack_tar(struct unpack *u, int fd, char digest[UNPACK_DIGEST_SIZE], struct err *e)
{
	cleanup(writer_freep) struct archive *to = archive_write_disk_new();
	cleanup(source_close) struct source s = { 0 };
	cleanup(reader_freep) struct archive *from = NULL;
	struct archive_entry *entry;
	int n;

	source_open(&s, fd, u);
	from = reader_open(&s, e);
	if (!from)
		return -1;
	archive_write_disk_set_options(to, EXTRACT_FLAGS);
	while ((n = next_entry(from, &s, &entry, e)) > 0) {
		if (count_entry(u, entry, e) < 0 || put_entry(u, from, to, &s, entry, e) < 0)
			return -1;
	}
	if (n < 0)
		return -1;
	if (archive_write_close(to) < ARCHIVE_WARN)
		return err_set(e, ERR_INTERNAL, "finish: %.200s", archive_error_string(to));
	return source_finish(&s, digest, e);
}

/* --- what a layer removes --- */

static int empty_dir(int dir, struct err *e)
{
	int again = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *d = again < 0 ? NULL : fdopendir(again);
	const struct dirent *ent;

	if (!d)
		return err_sys(e, errno, "list a directory that a layer empties");
	while ((ent = readdir(d)))
		if (strcmp(ent->d_name, ".") != 0 && strcmp(ent->d_name, "..") != 0 &&
		    file_remove_tree(dir, ent->d_name, e) < 0)
			return -1;
	return 0;
}

static int remove_named(const char *path, struct err *e)
{
	struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH };
	const char *name = base_name(path);
	cleanup(free_ptr) char *parent = xstrdup(path);
	cleanup(close_fd) int dir = -1;

	parent[name - path] = '\0';
	dir = (int)syscall(SYS_openat2, AT_FDCWD, parent[0] ? parent : ".", &how, sizeof(how));
	if (dir < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0; /* nothing there to be removed */
	if (dir < 0)
		return err_sys(e, errno, "open the directory of \"%.100s\"", path);
	if (strcmp(name, OPAQUE) == 0)
		return empty_dir(dir, e);
	name += strlen(WHITEOUT);
	if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return err_set(e, ERR_INVALID, "\"%.100s\" removes nothing that has a name", path);
	return file_remove_tree(dir, name, e);
}

/*
 * Every entry's header, and none of its bytes: -1 also from `each`, which may stop it with 1.
 * What is passed over is unpacked all the same, so it has a limit too.
 */
static int walk(int fd, uint64_t max_bytes,
		int (*each)(void *data, struct archive_entry *entry, struct err *e), void *data,
		struct err *e)
{
	cleanup(source_close) struct source s = { 0 };
	cleanup(reader_freep) struct archive *from = NULL;
	struct archive_entry *entry;
	uint64_t entries = 0, size;
	int n;

	source_open(&s, fd, NULL);
	from = reader_open(&s, e);
	if (!from)
		return -1;
	while ((n = next_entry(from, &s, &entry, e)) > 0) {
		if (++entries > UNPACK_ENTRIES_MAX)
			return err_set(e, ERR_TOO_LARGE, "the archive has more than %d files",
				       UNPACK_ENTRIES_MAX);
		size = (uint64_t)archive_entry_size(entry);
		if (size > max_bytes || cost_of(entry) > max_bytes - size)
			return err_set(e, ERR_TOO_LARGE, "the archive is too large");
		max_bytes -= size + cost_of(entry);
		n = each(data, entry, e);
		if (n != 0)
			return n < 0 ? -1 : 0;
	}
	return n;
}

static int remove_one(void *data, struct archive_entry *entry, struct err *e)
{
	(void)data;
	return is_whiteout(entry) ? remove_named(archive_entry_pathname(entry), e) : 0;
}

/* Removals on their own and first: where in the layer one stands must not matter. */
int unpack_layer(struct unpack *u, int fd, char digest[UNPACK_DIGEST_SIZE], struct err *e)
{
	if (u->entries > 0 && walk(fd, u->max_bytes, remove_one, NULL, e) < 0)
		return -1;
	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "go back to the beginning of a layer");
	return unpack_tar(u, fd, digest, e);
}

/* --- what an archive is --- */

struct looks {
	bool manifest, layout, root;
};

/* The first directory or file of a path, whatever its beginning: "./usr/bin" is "usr". */
static bool is_top(const char *path, const char *name, bool whole)
{
	size_t len = strlen(name);

	while (str_starts(path, "./"))
		path += 2;
	if (strncmp(path, name, len) != 0)
		return false;
	return path[len] == '\0' || (path[len] == '/' && (!whole || path[len + 1] == '\0'));
}

static int look(void *data, struct archive_entry *entry, struct err *e)
{
	static const char *const root[] = { "bin", "dev", "etc", "lib", "usr" };
	const char *path = archive_entry_pathname(entry);
	struct looks *l = data;

	(void)e;
	for (size_t i = 0; i < array_len(root); i++)
		l->root |= is_top(path, root[i], false);
	l->manifest |= is_top(path, ARCHIVE_MANIFEST, true);
	l->layout |= is_top(path, "oci-layout", true);
	return l->root; /* most archives are one, and say so in the beginning */
}

int unpack_is_layered(int fd, uint64_t max_bytes, bool *ret, struct err *e)
{
	struct looks l = { 0 };
	struct err ignored; /* it is found again, and told, when the archive is unpacked */
	int n = walk(fd, max_bytes, look, &l, &ignored);

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(e, errno, "go back to the beginning of the archive");
	*ret = n == 0 && !l.root && (l.manifest || l.layout);
	return 0;
}

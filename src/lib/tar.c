#include "lib/tar.h"

#include <stdio.h>
#include <string.h>

#define EXTRA_MAX (64UL * 1024) /* of pax records or a long name */
#define NAME_MAX_ 100
#define OCTAL_MAX 077777777777ULL /* what 11 digits hold */

/* The head of an entry, as it stands in a block. */
struct head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100];
	char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};

static const char zeros[TAR_BLOCK];

/* ---- out ---- */

static void octal(char *to, size_t size, uint64_t n)
{
	to[--size] = '\0';
	while (size > 0) {
		to[--size] = (char)('0' + (n & 7));
		n >>= 3;
	}
}

static unsigned checksum(const uint8_t block[TAR_BLOCK])
{
	unsigned sum = 0;

	for (size_t i = 0; i < TAR_BLOCK; i++)
		sum += i >= offsetof(struct head, sum) && i < offsetof(struct head, type)
			       ? ' '
			       : block[i];
	return sum;
}

/* As much of a text as fits; pax records have the rest. */
static void fill(char *to, size_t size, const char *from)
{
	size_t len = strnlen(from, size);

	memcpy(to, from, len);
}

static void add_head(struct buf *out, const struct tar_entry *x, char type, uint64_t size)
{
	struct head h = { .type = type };

	fill(h.name, sizeof(h.name), x->path);
	fill(h.target, sizeof(h.target), x->target);
	octal(h.mode, sizeof(h.mode), x->mode & 07777);
	octal(h.uid, sizeof(h.uid), x->uid & 07777777);
	octal(h.gid, sizeof(h.gid), x->gid & 07777777);
	octal(h.size, sizeof(h.size), size & OCTAL_MAX);
	octal(h.mtime, sizeof(h.mtime), x->mtime & OCTAL_MAX);
	memcpy(h.magic, "ustar", 6);
	memcpy(h.version, "00", 2);
	octal(h.sum, 7, checksum((const uint8_t *)&h));
	h.sum[7] = ' ';
	buf_add(out, &h, sizeof(h));
}

/* "LEN key=value\n", where LEN counts itself. */
static void add_record(struct buf *out, const char *key, const char *value)
{
	size_t rest = strlen(key) + strlen(value) + 3, len = rest + 1;
	char digits[24];

	while ((size_t)snprintf(digits, sizeof(digits), "%zu", len) + rest != len)
		len++;
	buf_addf(out, "%zu %s=", len, key);
	buf_adds(out, value);
	buf_adds(out, "\n");
}

void tar_add_padding(struct buf *out, uint64_t size)
{
	buf_add(out, zeros, (size_t)(-size % TAR_BLOCK));
}

void tar_add_entry(struct buf *out, const struct tar_entry *x)
{
	cleanup(buf_done) struct buf records = buf_make(EXTRA_MAX);
	struct tar_entry about = { .mode = 0644, .path = "pax" };
	char digits[24];

	if (strlen(x->path) > NAME_MAX_)
		add_record(&records, "path", x->path);
	if (strlen(x->target) > NAME_MAX_)
		add_record(&records, "linkpath", x->target);
	if (x->size > OCTAL_MAX) {
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)x->size);
		add_record(&records, "size", digits);
	}
	if (records.len > 0) {
		add_head(out, &about, 'x', records.len);
		buf_add(out, records.data, records.len);
		tar_add_padding(out, records.len);
	}
	add_head(out, x, (char)x->type, x->size);
}

void tar_add_end(struct buf *out)
{
	buf_add(out, zeros, TAR_BLOCK);
	buf_add(out, zeros, TAR_BLOCK);
}

/* ---- in ---- */

void tar_reader_init(struct tar_reader *r, const struct tar_events *events, void *data)
{
	*r = (struct tar_reader){ .events = events, .data = data };
	r->extra = buf_make(EXTRA_MAX + 1);
}

void tar_reader_done(struct tar_reader *r)
{
	buf_done(&r->extra);
}

static int bad(struct err *e, const char *what)
{
	return err_set(e, ERR_INVALID, "this is no tar archive, or a damaged one: %s", what);
}

/* Octal with blanks around it; or, with the first bit set, a number of as many bytes. */
static int number(const char *field, size_t size, uint64_t *ret, struct err *e)
{
	const uint8_t *b = (const uint8_t *)field;
	uint64_t n = 0;
	size_t i = 0;

	if (b[0] & 0x80) {
		n = b[0] & 0x7f;
		for (i = 1; i < size; i++) {
			if (n >> 54)
				return bad(e, "a number is too large");
			n = n << 8 | b[i];
		}
		*ret = n;
		return 0;
	}
	while (i < size && b[i] == ' ')
		i++;
	for (; i < size && b[i] >= '0' && b[i] <= '7'; i++)
		n = n << 3 | (uint64_t)(b[i] - '0');
	if (i < size && b[i] && b[i] != ' ')
		return bad(e, "a number is not octal");
	*ret = n;
	return 0;
}

static int take_numbers(struct tar_reader *r, const struct head *h, struct err *e)
{
	uint64_t mode, uid, gid;

	if (number(h->mode, sizeof(h->mode), &mode, e) < 0 ||
	    number(h->uid, sizeof(h->uid), &uid, e) < 0 ||
	    number(h->gid, sizeof(h->gid), &gid, e) < 0 ||
	    number(h->size, sizeof(h->size), &r->x.size, e) < 0 ||
	    number(h->mtime, sizeof(h->mtime), &r->x.mtime, e) < 0)
		return -1;
	r->x.mode = (uint32_t)mode & 07777;
	r->x.uid = (uint32_t)uid;
	r->x.gid = (uint32_t)gid;
	return 0;
}

static void take_names(struct tar_reader *r, const struct head *h)
{
	bool posix = memcmp(h->magic, "ustar", 6) == 0;

	if (!r->has_path && posix && h->prefix[0])
		snprintf(r->x.path, sizeof(r->x.path), "%.*s/%.*s", (int)sizeof(h->prefix),
			 h->prefix, (int)sizeof(h->name), h->name);
	else if (!r->has_path)
		snprintf(r->x.path, sizeof(r->x.path), "%.*s", (int)sizeof(h->name), h->name);
	if (!r->has_target)
		snprintf(r->x.target, sizeof(r->x.target), "%.*s", (int)sizeof(h->target),
			 h->target);
}

static int begin_entry(struct tar_reader *r, const struct head *h, struct err *e)
{
	char type = h->type == '\0' || h->type == '7' ? '0' : h->type;
	size_t len;

	take_names(r, h);
	if (r->has_size)
		r->x.size = r->said_size;
	r->has_path = r->has_target = r->has_size = false;
	if (type < '0' || type > '6')
		return bad(e, "an entry of an unknown kind");
	len = strlen(r->x.path);
	if (type == '0' && len > 0 && r->x.path[len - 1] == '/')
		type = '5'; /* as old archives write directories */
	r->x.type = (enum tar_type)type;
	if (type != '0')
		r->x.size = 0;
	r->taking = 'e';
	r->left = r->x.size;
	return r->events->entry(r->data, &r->x, e);
}

static int take_head(struct tar_reader *r, struct err *e)
{
	struct head h;
	uint64_t sum = 0;

	if (memcmp(r->block, zeros, TAR_BLOCK) == 0) {
		r->ended = true;
		return 0;
	}
	memcpy(&h, r->block, sizeof(h));
	if (number(h.sum, sizeof(h.sum), &sum, e) < 0)
		return -1;
	if (sum != checksum(r->block))
		return bad(e, "a checksum is wrong");
	if (take_numbers(r, &h, e) < 0)
		return -1;
	r->padding = (size_t)(-r->x.size % TAR_BLOCK);
	if (h.type != 'x' && h.type != 'L' && h.type != 'K' && h.type != 'g') {
		if (begin_entry(r, &h, e) < 0)
			return -1;
		r->padding = (size_t)(-r->left % TAR_BLOCK);
		return 0;
	}
	if (r->x.size > EXTRA_MAX)
		return bad(e, "a name or a record is too long");
	buf_clear(&r->extra);
	r->taking = h.type;
	r->left = r->x.size;
	return 0;
}

static int take_text(char to[TAR_PATH_SIZE], const char *from, size_t len, struct err *e)
{
	if (len >= TAR_PATH_SIZE || memchr(from, '\0', len))
		return bad(e, "a path is too long, or none");
	memcpy(to, from, len);
	to[len] = '\0';
	return 0;
}

static int decimal(const char *s, size_t len, uint64_t *ret)
{
	uint64_t n = 0;

	if (len == 0 || len > 18)
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (s[i] < '0' || s[i] > '9')
			return -1;
		n = n * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = n;
	return 0;
}

/* One "key=value". What we do not know changes nothing we do. */
static int take_record(struct tar_reader *r, const char *s, size_t len, struct err *e)
{
	const char *equals = memchr(s, '=', len);
	size_t key = equals ? (size_t)(equals - s) : 0, rest = len - key - 1;

	if (!equals)
		return bad(e, "a record without =");
	if (key == 4 && memcmp(s, "path", 4) == 0) {
		r->has_path = true;
		return take_text(r->x.path, equals + 1, rest, e);
	}
	if (key == 8 && memcmp(s, "linkpath", 8) == 0) {
		r->has_target = true;
		return take_text(r->x.target, equals + 1, rest, e);
	}
	if (key == 4 && memcmp(s, "size", 4) == 0) {
		r->has_size = true;
		return decimal(equals + 1, rest, &r->said_size) < 0 ? bad(e, "a size") : 0;
	}
	return 0;
}

static int take_records(struct tar_reader *r, struct err *e)
{
	const char *at = buf_str(&r->extra), *end = at + r->extra.len;

	while (at < end) {
		const char *space = memchr(at, ' ', (size_t)(end - at));
		uint64_t len;
		size_t digits;

		if (!space)
			return bad(e, "a record without a length");
		digits = (size_t)(space - at);
		if (decimal(at, digits, &len) < 0 || len > (size_t)(end - at) ||
		    len < digits + 2 || at[len - 1] != '\n')
			return bad(e, "a record of a wrong length");
		if (take_record(r, space + 1, (size_t)len - digits - 2, e) < 0)
			return -1;
		at += len;
	}
	return 0;
}

/* All bytes of what the last head began are there. */
static int take_end(struct tar_reader *r, struct err *e)
{
	char taken = r->taking;

	r->taking = '\0';
	if (taken == 'e')
		return r->events->entry_end(r->data, e);
	if (taken == 'x')
		return take_records(r, e);
	if (taken == 'L') {
		r->has_path = true;
		return take_text(r->x.path, buf_str(&r->extra),
				 strnlen(buf_str(&r->extra), r->extra.len), e);
	}
	if (taken == 'K') {
		r->has_target = true;
		return take_text(r->x.target, buf_str(&r->extra),
				 strnlen(buf_str(&r->extra), r->extra.len), e);
	}
	return 0;
}

static ssize_t take_bytes(struct tar_reader *r, const char *bytes, size_t len, struct err *e)
{
	size_t n = len < r->left ? len : (size_t)r->left;

	if (r->taking == 'e' && r->events->bytes(r->data, bytes, n, e) < 0)
		return -1;
	if (r->taking != 'e' && r->taking != 'g')
		buf_add(&r->extra, bytes, n);
	r->left -= n;
	return (ssize_t)n;
}

static ssize_t take_some(struct tar_reader *r, const char *bytes, size_t len, struct err *e)
{
	size_t n;

	if (r->left > 0)
		return take_bytes(r, bytes, len, e);
	if (r->padding > 0) {
		n = len < r->padding ? len : r->padding;
		r->padding -= n;
		return (ssize_t)n;
	}
	n = len < TAR_BLOCK - r->have ? len : TAR_BLOCK - r->have;
	memcpy(r->block + r->have, bytes, n);
	r->have += n;
	if (r->have < TAR_BLOCK)
		return (ssize_t)n;
	r->have = 0;
	return take_head(r, e) < 0 ? -1 : (ssize_t)n;
}

int tar_reader_feed(struct tar_reader *r, const void *bytes, size_t len, struct err *e)
{
	const char *at = bytes;

	while (len > 0 && !r->ended) {
		ssize_t n = take_some(r, at, len, e);

		if (n < 0)
			return -1;
		at += n;
		len -= (size_t)n;
		if (r->taking && r->left == 0 && take_end(r, e) < 0)
			return -1;
	}
	return 0;
}

int tar_reader_end(const struct tar_reader *r, struct err *e)
{
	return r->ended ? 0 : bad(e, "it is cut off");
}

int tar_path_below(const char *path, char out[TAR_PATH_SIZE], struct err *e)
{
	size_t len = 0;

	for (const char *at = path; *at;) {
		size_t n = strcspn(at, "/");

		if (n == 2 && memcmp(at, "..", 2) == 0)
			return err_set(e, ERR_INVALID, "a path of the archive leads out: %.150s",
				       path);
		if (n > 0 && !(n == 1 && at[0] == '.')) {
			if (len + n + 2 > TAR_PATH_SIZE)
				return bad(e, "a path is too long");
			if (len > 0)
				out[len++] = '/';
			memcpy(out + len, at, n);
			len += n;
		}
		at += n + (at[n] == '/');
	}
	out[len] = '\0';
	return 0;
}

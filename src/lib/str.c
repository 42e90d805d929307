#include "lib/str.h"

#include <stdlib.h>
#include <string.h>

bool str_copy_bytes(char *to, size_t size, const void *from, size_t len)
{
	if (len >= size)
		return false;
	memcpy(to, from, len);
	to[len] = '\0';
	return true;
}

bool str_copy(char *to, size_t size, const char *from)
{
	return str_copy_bytes(to, size, from, strlen(from));
}

bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool str_ends(const char *s, const char *suffix)
{
	size_t a = strlen(s), b = strlen(suffix);

	return a >= b && strcmp(s + (a - b), suffix) == 0;
}

/* Read digits; `*rest` is what follows them. False if none, or past 2^64. */
static bool digits(const char *s, uint64_t *ret, const char **rest)
{
	uint64_t n = 0;
	const char *p = s;

	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	*rest = p;
	*ret = n;
	return p != s;
}

int str_u64(const char *s, uint64_t *ret, struct err *e)
{
	const char *rest;
	uint64_t n;

	if (!digits(s, &n, &rest) || *rest)
		return err_set(e, ERR_INVALID, "not a whole number: \"%.40s\"", s);
	*ret = n;
	return 0;
}

struct unit {
	const char *name;
	uint64_t factor;
};

static int with_unit(const char *s, const struct unit *units, size_t count, uint64_t *ret)
{
	const char *rest;
	uint64_t n;

	if (!digits(s, &n, &rest))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (strcmp(rest, units[i].name) == 0)
			return __builtin_mul_overflow(n, units[i].factor, ret) ? -1 : 0;
	return -1;
}

int str_size(const char *s, uint64_t *ret, struct err *e)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "k", 1ULL << 10 },
		{ "m", 1ULL << 20 },
		{ "g", 1ULL << 30 },
		{ "t", 1ULL << 40 },
	};
	uint64_t n;

	if (with_unit(s, units, array_len(units), &n) < 0)
		return err_set(e, ERR_INVALID, "not a size like 512m or 2g: \"%.40s\"", s);
	*ret = n;
	return 0;
}

int str_duration_ms(const char *s, uint64_t *ret, struct err *e)
{
	static const struct unit units[] = {
		{ "ms", 1 },
		{ "", 1000 },
		{ "s", 1000 },
		{ "m", 60 * 1000 },
		{ "h", 60 * 60 * 1000 },
		{ "d", 24 * 60 * 60 * 1000 },
	};
	uint64_t n;

	if (with_unit(s, units, array_len(units), &n) < 0)
		return err_set(e, ERR_INVALID, "not a duration like 30s or 5m: \"%.40s\"", s);
	*ret = n;
	return 0;
}

uint32_t str_hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	return h;
}

void str_hex(char *to, const void *data, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++) {
		to[2 * i] = hex[p[i] >> 4];
		to[2 * i + 1] = hex[p[i] & 15];
	}
	to[2 * len] = '\0';
}

/* How long the character that starts with this byte is, and what its second byte may be. */
static size_t utf8_shape(uint8_t first, uint8_t *low, uint8_t *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef) {
		if (first == 0xe0)
			*low = 0xa0; /* shorter forms exist */
		if (first == 0xed)
			*high = 0x9f; /* surrogates */
		return 3;
	}
	if (first >= 0xf0 && first <= 0xf4) {
		if (first == 0xf0)
			*low = 0x90;
		if (first == 0xf4)
			*high = 0x8f; /* past U+10FFFF */
		return 4;
	}
	return 0;
}

/* Length of the character at p; 0 if it is none; `*cut` if it only lacks its end. */
static size_t utf8_char(const uint8_t *p, size_t len, bool *cut)
{
	uint8_t low, high;
	size_t want = utf8_shape(p[0], &low, &high);

	*cut = false;
	for (size_t i = 1; i < want; i++) {
		if (i == len) {
			*cut = true;
			return 0;
		}
		if (p[i] < low || p[i] > high)
			return 0;
		low = 0x80;
		high = 0xbf;
	}
	return want;
}

size_t utf8_char_len(const void *data, size_t len)
{
	bool cut;

	return len > 0 ? utf8_char(data, len, &cut) : 0;
}

size_t utf8_valid_prefix(const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t at = 0;
	bool cut;

	while (at < len) {
		size_t n = utf8_char(p + at, len - at, &cut);

		if (n == 0)
			break;
		at += n;
	}
	return at;
}

bool utf8_is_cut(const void *data, size_t len)
{
	bool cut = false;

	if (len > 0)
		(void)utf8_char(data, len, &cut);
	return cut;
}

/* C0, DEL and C1; ends of lines and paragraphs, and what turns the direction of the rest. */
static const struct {
	uint32_t first, last;
} controls[] = {
	{ 0x00, 0x1f },
	{ 0x7f, 0x9f },
	{ 0x2028, 0x202e },
	{ 0x2066, 0x2069 },
};

struct str_char str_char_at(const char *s)
{
	size_t len = utf8_char_len(s, s[0] ? strnlen(s, 4) : 1);
	struct str_char ret = { .len = len ? len : 1, .number = (unsigned char)s[0] };

	if (len > 1)
		ret.number &= 0x7fU >> len;
	for (size_t i = 1; i < len; i++)
		ret.number = ret.number << 6 | ((unsigned char)s[i] & 0x3f);
	ret.control = len == 0;
	for (size_t i = 0; i < array_len(controls); i++)
		ret.control |= ret.number >= controls[i].first && ret.number <= controls[i].last;
	return ret;
}

bool str_has_control(const char *s)
{
	for (struct str_char c; *s; s += c.len) {
		c = str_char_at(s);
		if (c.control)
			return true;
	}
	return false;
}

void base64_add(struct buf *out, const void *data, size_t len)
{
	static const char table[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "abcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i += 3) {
		size_t have = len - i < 3 ? len - i : 3;
		uint32_t v = (uint32_t)p[i] << 16;
		char quad[4];

		if (have > 1)
			v |= (uint32_t)p[i + 1] << 8;
		if (have > 2)
			v |= p[i + 2];
		quad[0] = table[v >> 18];
		quad[1] = table[v >> 12 & 63];
		quad[2] = have > 1 ? table[v >> 6 & 63] : '=';
		quad[3] = have > 2 ? table[v & 63] : '=';
		buf_add(out, quad, 4);
	}
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63
					: -1;
}

int base64_decode(const char *s, struct buf *out, struct err *e)
{
	size_t len = strlen(s);

	if (len % 4 != 0)
		return err_set(e, ERR_INVALID, "base64 must be a multiple of 4 characters long");
	for (size_t i = 0; i < len; i += 4) {
		bool last = i + 4 == len;
		size_t pad = !last ? 0 : (s[i + 3] == '=') + (s[i + 2] == '=' && s[i + 3] == '=');
		uint32_t v = 0;
		uint8_t three[3];

		for (size_t k = 0; k < 4; k++) {
			int d = k >= 4 - pad ? 0 : base64_value(s[i + k]);

			if (d < 0)
				return err_set(e, ERR_INVALID, "not a base64 character: '%c'",
					       s[i + k]);
			v = v << 6 | (uint32_t)d;
		}
		three[0] = (uint8_t)(v >> 16);
		three[1] = (uint8_t)(v >> 8);
		three[2] = (uint8_t)v;
		buf_add(out, three, 3 - pad);
	}
	return 0;
}

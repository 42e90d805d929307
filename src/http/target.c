#include "http/target.h"

#include <string.h>

#include "lib/errno-map.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* One byte of `from`, decoded; returns how many characters it took, 0 if bad. */
static size_t decode_one(const char *from, size_t len, char *to)
{
	int high, low;

	*to = from[0];
	if (from[0] != '%')
		return 1;
	if (len < 3)
		return 0;
	high = hex_digit(from[1]);
	low = hex_digit(from[2]);
	if (high < 0 || low < 0 || high + low == 0)
		return 0;
	*to = (char)(high * 16 + low);
	return 3;
}

static int decode(const char *from, size_t len, bool plus_is_space, char *to, size_t size,
		  struct err *e)
{
	size_t out = 0;

	for (size_t in = 0, n; in < len; in += n) {
		char c;

		n = decode_one(from + in, len - in, &c);
		if (n == 0)
			return err_set(e, ERR_INVALID, "bad percent-encoding in the path or query");
		if (out + 1 >= size)
			return err_set(e, ERR_INVALID, "a part of the path or query is too long");
		to[out++] = plus_is_space && n == 1 && c == '+' ? ' ' : c;
	}
	if (size == 0)
		return err_set(e, ERR_INVALID, "a part of the path or query is too long");
	to[out] = '\0';
	return 0;
}

static int path_escape(struct err *e)
{
	err_set(e, ERR_INVALID, "the path must not have . or .. as a part");
	return err_reason(e, REASON_PATH_ESCAPE, 0);
}

int http_segment(const char **at, char *to, size_t size, struct err *e)
{
	size_t len = strcspn(*at, "/");

	if (decode(*at, len, false, to, size, e) < 0)
		return -1;
	if (strcmp(to, ".") == 0 || strcmp(to, "..") == 0)
		return path_escape(e);
	*at += len + ((*at)[len] == '/');
	return 0;
}

int http_query(const char *query, const char *name, char *to, size_t size, bool *found,
	       struct err *e)
{
	size_t name_len = strlen(name);

	*found = false;
	to[0] = '\0';
	for (const char *at = query; *at;) {
		size_t len = strcspn(at, "&");

		if (len >= name_len && strncmp(at, name, name_len) == 0 &&
		    (len == name_len || at[name_len] == '=')) {
			size_t skip = name_len + (len > name_len);

			*found = true;
			return decode(at + skip, len - skip, true, to, size, e);
		}
		at += len + (at[len] == '&');
	}
	return 0;
}

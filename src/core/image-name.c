#include "core/image-name.h"

#include <string.h>

#define LOWER      "abcdefghijklmnopqrstuvwxyz"
#define UPPER      "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS     "0123456789"
#define HEX        DIGITS "abcdef"
#define DIGEST_LEN (sizeof("sha256:") - 1 + 64)
#define TAG_MAX    128
#define HOST_MAX   253

int image_name_check(const char *name, struct err *e)
{
	size_t len = strnlen(name, IMAGE_NAME_SIZE);

	if (len == 0)
		return err_set(e, ERR_INVALID, "image is missing: it must be the name of an image");
	if (len == IMAGE_NAME_SIZE)
		return err_set(e, ERR_INVALID, "an image name has at most %d characters",
			       IMAGE_NAME_SIZE - 1);
	if (!strspn(name, LOWER DIGITS) || strspn(name, LOWER DIGITS "._/:-") != len ||
	    strstr(name, "..") || strstr(name, "//"))
		return err_set(e, ERR_INVALID,
			       "not an image name: \"%.60s\" (a-z 0-9 . _ / : -, first a letter or "
			       "digit, no \"..\" or \"//\")",
			       name);
	return 0;
}

/* The length of the digest `s` begins with, or 0. */
static size_t digest_len(const char *s)
{
	if (strncmp(s, "sha256:", 7) != 0 || strspn(s + 7, HEX) != 64)
		return 0;
	return DIGEST_LEN;
}

/* Letters, digits and single separators between them: "a", "a.b-c", not "-a" or "a..b". */
static size_t word_len(const char *s, const char *chars, const char *separators)
{
	size_t len = strspn(s, chars), more;

	if (len == 0)
		return 0;
	while (s[len] && strchr(separators, s[len])) {
		more = strspn(s + len + 1, chars);
		if (more == 0)
			return 0;
		len += 1 + more;
	}
	return len;
}

static size_t bracket_len(const char *s)
{
	size_t inside = strspn(s + 1, HEX "ABCDEF:.");

	return inside >= 2 && inside <= 45 && s[1 + inside] == ']' ? inside + 2 : 0;
}

/* What is after ":port"; `s` itself if there is none; NULL if it is no port. */
static const char *skip_port(const char *s)
{
	unsigned port = 0;
	size_t len;

	if (*s != ':')
		return s;
	len = strspn(++s, DIGITS);
	if (len == 0 || len > 5)
		return NULL;
	for (size_t i = 0; i < len; i++)
		port = port * 10 + (unsigned)(s[i] - '0');
	return port > 0 && port <= 65535 ? s + len : NULL;
}

/* A first word counts as a registry only if it looks like one: a dot, a port, localhost. */
static const char *skip_host(const char *s)
{
	size_t len = *s == '[' ? bracket_len(s) : word_len(s, LOWER UPPER DIGITS, ".-");
	bool plain = *s != '[' && !memchr(s, '.', len) && s[len] != ':';

	if (len == 0 || len > HOST_MAX)
		return NULL;
	if (plain && !(len == 9 && strncmp(s, "localhost", 9) == 0))
		return NULL;
	s = skip_port(s + len);
	return s && *s == '/' ? s + 1 : NULL;
}

static const char *skip_path(const char *s)
{
	size_t len;

	for (;;) {
		len = strspn(s, LOWER DIGITS "._-");
		if (len == 0 || strchr("._-", s[0]) || strchr("._-", s[len - 1]))
			return NULL;
		s += len;
		if (*s != '/')
			return s;
		s++;
	}
}

static const char *skip_tag(const char *s)
{
	size_t len;

	if (*s != ':')
		return s;
	s++;
	len = strspn(s, LOWER UPPER DIGITS "._-");
	if (len == 0 || len > TAG_MAX || *s == '.' || *s == '-')
		return NULL;
	return s + len;
}

static const char *skip_digest(const char *s)
{
	size_t len;

	if (*s != '@')
		return s;
	len = digest_len(s + 1);
	return len ? s + 1 + len : NULL;
}

int image_reference_check(const char *ref, struct err *e)
{
	static const char *(*const parts[])(const char *) = {
		skip_host,
		skip_path,
		skip_tag,
		skip_digest,
	};
	const char *p = ref;

	if (strnlen(ref, IMAGE_REFERENCE_SIZE) == IMAGE_REFERENCE_SIZE)
		return err_set(e, ERR_INVALID, "an image reference has at most %d characters",
			       IMAGE_REFERENCE_SIZE - 1);
	for (size_t i = 0; i < array_len(parts) && p; i++)
		p = parts[i](p);
	/* A registry would allow ".." in a tag; a path made of it would mean another. */
	if (!p || *p || strstr(ref, "..")) {
		err_set(e, ERR_INVALID, "not an image reference: \"%.100s\"", ref);
		return err_fix(e, "Write it as registry[:port]/path[:tag][@sha256:...], for "
				  "example localhost:5000/base:1.");
	}
	return 0;
}

#include "core/identity.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/hash.h"
#include "lib/str.h"

#define TEXT_SIZE  1024 /* four parts with their lengths and a salt */
#define HEX_CHARS  48
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static const char *const prefixes[IDENTITY_KIND_COUNT] = {
	[IDENTITY_NONE] = "",
	[IDENTITY_ORG] = "org",
	[IDENTITY_USR] = "usr",
	[IDENTITY_BOT] = "bot",
	[IDENTITY_UBT] = "ubt",
	[IDENTITY_SES] = "ses",
	[IDENTITY_LEGACY] = "",
};

static const char *const reserved[] = {
	"www",
	"api",
	"admin",
	"root",
	"system",
	"cloudflare",
	"workers",
};

/* How a text with lengths begins: no joined text may begin so. */
#define MARK "v2:"

static const char *part(const char *s)
{
	return s ? s : "";
}

static bool is_visible(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

static int check_part(const char *what, const char *s, bool must, struct err *e)
{
	if (must && !s[0])
		return err_set(e, ERR_INVALID, "an identity needs a %s", what);
	if (strlen(s) > IDENTITY_PART_MAX)
		return err_set(e, ERR_INVALID, "a %s id has at most %d characters", what,
			       IDENTITY_PART_MAX);
	if (!is_visible(s))
		return err_set(e, ERR_INVALID, "a %s id is visible ASCII without spaces", what);
	return 0;
}

static int check_shared(const struct identity *id, struct err *e)
{
	if (check_part("org", part(id->org), false, e) < 0 ||
	    check_part("user", part(id->user), true, e) < 0)
		return -1;
	return check_part("bot", part(id->bot), false, e);
}

static enum identity_kind shared_kind(const struct identity *id)
{
	if (part(id->bot)[0])
		return part(id->org)[0] ? IDENTITY_BOT : IDENTITY_UBT;
	return part(id->org)[0] ? IDENTITY_ORG : IDENTITY_USR;
}

/* With '_' at an end even a part without "__" makes one: `a_` + `b` is `a` + `_b`. */
static bool could_split(const char *s)
{
	return s[0] == '_' || str_ends(s, "_") || strstr(s, "__");
}

static bool is_plain(const struct identity *id)
{
	return !str_starts(part(id->org), MARK) && !could_split(part(id->org)) &&
	       !could_split(part(id->user)) && !could_split(part(id->bot));
}

static void join(const struct identity *id, char *out, size_t size)
{
	bool org = part(id->org)[0], bot = part(id->bot)[0];

	snprintf(out, size, "%s%s__%s%s%s", org ? "" : "user:", org ? id->org : id->user, id->user,
		 bot ? "__bot:" : "", part(id->bot));
}

static void join_with_lengths(const struct identity *id, char *out, size_t size)
{
	const char *parts[] = { prefixes[shared_kind(id)], part(id->org), part(id->user),
				part(id->bot) };
	size_t n;

	snprintf(out, size, MARK);
	for (size_t i = 0; i < array_len(parts); i++) {
		n = strlen(out);
		snprintf(out + n, size - n, "%zu:%s,", strlen(parts[i]), parts[i]);
	}
}

static void make_key(enum identity_kind kind, const char *text, char out[IDENTITY_KEY_SIZE])
{
	char hex[HASH_HEX_SIZE];

	hash_hex(text, strlen(text), hex);
	snprintf(out, IDENTITY_KEY_SIZE, "%s-%.*s", prefixes[kind], HEX_CHARS, hex);
}

int identity_session_key(const struct identity *id, char out[IDENTITY_KEY_SIZE], struct err *e)
{
	if (check_part("session", part(id->session), true, e) < 0)
		return -1;
	make_key(IDENTITY_SES, id->session, out);
	return 0;
}

int identity_shared_key(const struct identity *id, char out[IDENTITY_KEY_SIZE], struct err *e)
{
	char text[TEXT_SIZE];

	if (check_shared(id, e) < 0)
		return -1;
	if (is_plain(id))
		join(id, text, sizeof(text));
	else
		join_with_lengths(id, text, sizeof(text));
	make_key(shared_kind(id), text, out);
	return 0;
}

int identity_legacy_key(const struct identity *id, char out[IDENTITY_LEGACY_SIZE], struct err *e)
{
	if (check_shared(id, e) < 0)
		return -1;
	join(id, out, IDENTITY_LEGACY_SIZE);
	return 0;
}

static enum identity_kind hashed_kind(const char *key)
{
	if (strlen(key) != IDENTITY_KEY_LEN || key[3] != '-' ||
	    strspn(key + 4, "0123456789abcdef") != HEX_CHARS)
		return IDENTITY_NONE;
	for (int k = IDENTITY_ORG; k <= IDENTITY_SES; k++)
		if (strncmp(key, prefixes[k], 3) == 0)
			return (enum identity_kind)k;
	return IDENTITY_NONE;
}

/* Something, `__`, something. */
static bool is_legacy(const char *key)
{
	size_t len = strnlen(key, IDENTITY_LEGACY_MAX + 1);
	const char *gap;

	if (len < 4 || len > IDENTITY_LEGACY_MAX || !is_visible(key))
		return false;
	gap = strstr(key + 1, "__");
	return gap && gap[2];
}

int identity_key_check(const char *key, enum identity_kind *ret, struct err *e)
{
	enum identity_kind kind = hashed_kind(key);

	if (kind == IDENTITY_NONE && is_legacy(key))
		kind = IDENTITY_LEGACY;
	if (kind == IDENTITY_NONE)
		return err_set(e, ERR_INVALID, "not an identity key: \"%.60s\"", key);
	*ret = kind;
	return 0;
}

int identity_name_check(const char *name, struct err *e)
{
	size_t len = strnlen(name, IDENTITY_NAME_MAX + 1);

	if (len == 0 || len > IDENTITY_NAME_MAX)
		return err_set(e, ERR_INVALID, "a name has 1 to %d characters", IDENTITY_NAME_MAX);
	if (strspn(name, NAME_CHARS) != len)
		return err_set(e, ERR_INVALID,
			       "a name is made of letters, digits, '.', '_', '-', not \"%s\"",
			       str_has_control(name) ? "..." : name);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) /* no path can name it */
		return err_set(e, ERR_INVALID, "\".\" and \"..\" are no names");
	if (name[0] == '-' || name[len - 1] == '-')
		return err_set(e, ERR_INVALID, "a name neither begins nor ends with '-'");
	for (size_t i = 0; i < array_len(reserved); i++)
		if (strcasecmp(reserved[i], name) == 0)
			return err_set(e, ERR_INVALID, "the name \"%s\" is reserved", name);
	return 0;
}

#include "core/sandbox-asked.h"

#include <inttypes.h>
#include <string.h>

#include "lib/errno-map.h"
#include "lib/json.h"

#define TOLD      3  /* differences; of the rest it is said how many */
#define WORD_MAX  40 /* bytes of a value in the message */
#define TEXT_SIZE 512

struct differences {
	struct buf text;
	size_t count;
};

/* clang-format off */
/* Of these the empty one says nothing. */
#define WORD(member) \
	{ #member, offsetof(struct sandbox_spec, member), offsetof(struct sandbox, member) }
static const struct {
	const char *name;
	size_t asked, has;
} words[] = {
	WORD(image),
	WORD(runtime),
	WORD(profile),
};
/* clang-format on */

static void differences_done(struct differences *d)
{
	buf_done(&d->text);
}

/* True if it is one of those that are told: then its text follows. */
static bool begin(struct differences *d)
{
	if (++d->count > TOLD)
		return false;
	buf_adds(&d->text, d->count > 1 ? "; " : "");
	return true;
}

static void compare_words(const struct sandbox_asked *asked, const struct sandbox *sb,
			  struct differences *d)
{
	for (size_t i = 0; i < array_len(words); i++) {
		const char *wanted = (const char *)&asked->spec + words[i].asked;
		const char *has = (const char *)sb + words[i].has;

		if (wanted[0] && strcmp(wanted, has) != 0 && begin(d))
			buf_addf(&d->text, "%s is %.*s, not %.*s", words[i].name, WORD_MAX,
				 has[0] ? has : "none", WORD_MAX, wanted);
	}
}

static void compare_number(const char *name, int64_t wanted, int64_t has, struct differences *d)
{
	if (wanted != SANDBOX_OPEN && wanted != has && begin(d))
		buf_addf(&d->text, "%s is %" PRId64 ", not %" PRId64, name, has, wanted);
}

static void compare_numbers(const struct sandbox_asked *asked, const struct sandbox *sb,
			    struct differences *d)
{
	const struct sandbox_spec *spec = &asked->spec;

	for (int i = 0; i < LIMIT_COUNT; i++)
		compare_number(limit_name((enum limit)i), spec->limits.of[i], sb->limits.of[i], d);
	compare_number("sleep_after_ms", spec->sleep_after_ms, (int64_t)sb->sleep_after_ms, d);
	if (asked->keep_alive && spec->keep_alive != sb->keep_alive && begin(d))
		buf_addf(&d->text, "keep_alive is %s, not %s", sb->keep_alive ? "true" : "false",
			 spec->keep_alive ? "true" : "false");
	if (spec->lifetime_ms != SANDBOX_OPEN && (spec->lifetime_ms > 0) != (sb->expires_ms > 0) &&
	    begin(d))
		buf_addf(&d->text, "it has %s end, and lifetime_ms is %" PRId64,
			 sb->expires_ms > 0 ? "an" : "no", spec->lifetime_ms);
}

/* The database has its own order and blanks. */
static bool is_same_map(const char *a, const char *b)
{
	cleanup(json_free) struct json *left = NULL, *right = NULL;
	const char *name, *value;
	struct err ignored;
	size_t n = 0;

	if (json_parse(a, strlen(a), &left, &ignored) < 0 ||
	    json_parse(b, strlen(b), &right, &ignored) < 0)
		return false;
	for (; json_member(left, n, &name, &value); n++)
		if (!json_get(right, name) || strcmp(json_get_str(right, name), value) != 0)
			return false;
	return !json_member(right, n, &name, &value);
}

/* A stored one that cannot be read is no other one. */
static bool is_same_network(const char *a, const char *b)
{
	cleanup(network_done) struct network left = { 0 }, right = { 0 };
	struct err ignored;

	return network_read(a, strlen(a), &left, &ignored) < 0 ||
	       network_read(b, strlen(b), &right, &ignored) < 0 || network_equal(&left, &right);
}

/* Their values may be long, or not for an error message. */
static void compare_texts(const struct sandbox_asked *asked, const struct sandbox *sb,
			  const char *network, struct differences *d)
{
	if (asked->labels && !is_same_map(asked->spec.labels, sb->labels) && begin(d))
		buf_adds(&d->text, "labels differ");
	if (asked->env && !is_same_map(asked->spec.env, sb->env) && begin(d))
		buf_adds(&d->text, "env differs");
	if (asked->network && !is_same_network(asked->network, network) && begin(d))
		buf_adds(&d->text, "network differs");
}

int sandbox_asked_check(const struct sandbox_asked *asked, const struct sandbox *sb,
			const char *network, struct err *e)
{
	cleanup(differences_done) struct differences d = { .text = buf_make(TEXT_SIZE) };

	compare_words(asked, sb, &d);
	compare_numbers(asked, sb, &d);
	compare_texts(asked, sb, network, &d);
	if (d.count == 0)
		return 0;
	if (d.count > TOLD)
		buf_addf(&d.text, "; and %zu more", d.count - TOLD);
	err_set(e, ERR_CONFLICT, "%s has this %s and other options: %s", sb->id,
		sb->name[0] ? "name" : "identity", buf_str(&d.text));
	err_reason(e, REASON_OPTIONS_DIFFER, 0);
	return err_fix(e, "Leave out what differs, use another name, change the sandbox "
			  "('berth limits', PATCH), or delete it first.");
}

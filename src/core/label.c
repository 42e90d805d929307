#include "core/label.h"

#include <string.h>

#include "lib/json.h"
#include "lib/str.h"

#define KEY_CHARS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/-"
#define ENV_CHARS     "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
#define SELECTOR_TEXT 4096

/* What the sandbox itself is told by, or what would change which program is meant. */
static const char *const env_reserved[] = { "HOME", "SESSION_ID", "SESSION_HOME" };

static int key_check(const char *key, size_t len, struct err *e)
{
	if (len == 0 || len > LABEL_KEY_MAX || strspn(key, KEY_CHARS) < len)
		return err_set(e, ERR_INVALID,
			       "a label's name is 1 to %d of letters, digits, '.', '_', '/', '-', "
			       "not \"%.*s\"",
			       LABEL_KEY_MAX, (int)(len < 40 ? len : 40), key);
	return 0;
}

static int value_check(const char *key, size_t len, const char *value, struct err *e)
{
	if (strlen(value) > LABEL_VALUE_MAX || str_has_control(value))
		return err_set(e, ERR_INVALID, "label %.*s: at most %d bytes, none of control",
			       (int)len, key, LABEL_VALUE_MAX);
	return 0;
}

int labels_check(const struct strv *labels, struct err *e)
{
	if (labels->len > LABELS_MAX)
		return err_set(e, ERR_INVALID, "a sandbox has at most %d labels", LABELS_MAX);
	for (size_t i = 0; i < labels->len; i++) {
		const char *item = labels->items[i];
		size_t len = strcspn(item, "=");

		if (key_check(item, len, e) < 0 || value_check(item, len, item + len + 1, e) < 0)
			return -1;
	}
	return 0;
}

static bool is_reserved(const char *name, size_t len)
{
	for (size_t i = 0; i < array_len(env_reserved); i++)
		if (strlen(env_reserved[i]) == len && strncmp(env_reserved[i], name, len) == 0)
			return true;
	return false;
}

int env_check(const struct strv *env, struct err *e)
{
	if (env->len > ENV_MAX)
		return err_set(e, ERR_INVALID, "env has at most %d variables", ENV_MAX);
	for (size_t i = 0; i < env->len; i++) {
		const char *item = env->items[i];
		size_t len = strcspn(item, "=");
		int shown = (int)(len < 40 ? len : 40);

		if (len == 0 || len > ENV_KEY_MAX || strspn(item, ENV_CHARS) < len ||
		    (item[0] >= '0' && item[0] <= '9'))
			return err_set(e, ERR_INVALID, "env: \"%.*s\" cannot be a variable", shown,
				       item);
		if (is_reserved(item, len))
			return err_set(e, ERR_INVALID, "env: %.*s is set by Berth", shown, item);
		if (strlen(item + len + 1) > ENV_VALUE_MAX)
			return err_set(e, ERR_INVALID, "env: %.*s is longer than %d bytes", shown,
				       item, ENV_VALUE_MAX);
	}
	return 0;
}

/* ---- selectors ---- */

static bool names(const struct strv *seen, const char *key)
{
	for (size_t i = 0; i < seen->len; i++)
		if (strcmp(seen->items[i], key) == 0)
			return true;
	return false;
}

static int add_key(struct selector *s, const char *key, struct err *e)
{
	if (key_check(key, strlen(key), e) < 0)
		return -1;
	buf_addf(&s->keys, "%s\"%s\"", s->keys.len > 1 ? "," : "", key);
	s->indexed = true;
	return 0;
}

/* One of `k`, `k=v`, `k!=v`; it is changed. */
static int add_term(struct selector *s, char *term, struct strv *seen, struct err *e)
{
	char *value = strchr(term, '=');
	bool unequal = value && value > term && value[-1] == '!';

	if (!value)
		return add_key(s, term, e);
	value[unequal ? -1 : 0] = '\0';
	value++;
	if (key_check(term, strlen(term), e) < 0 ||
	    value_check(term, strlen(term), value, e) < 0)
		return -1;
	if (unequal) {
		json_open(&s->unequal, '{');
		json_str(&s->unequal, term, value);
		buf_adds(&s->unequal, "}");
		return 0;
	}
	if (names(seen, term))
		return err_set(e, ERR_INVALID, "selector: %s cannot have two values", term);
	strv_add(seen, term);
	json_str(&s->equal, term, value);
	s->indexed = true;
	return 0;
}

int selector_read(const char *text, struct selector *ret, struct err *e)
{
	cleanup(strv_done) struct strv seen = { 0 };
	struct selector s = { .equal = buf_make(SELECTOR_TEXT),
			      .unequal = buf_make(SELECTOR_TEXT),
			      .keys = buf_make(SELECTOR_TEXT) };
	cleanup(free_ptr) char *copy = xstrdup(text);
	char *next = copy, *term;
	int n = 0;

	buf_adds(&s.equal, "{");
	buf_adds(&s.unequal, "[");
	buf_adds(&s.keys, "{");
	while (text[0] && (term = strsep(&next, ","))) {
		bool bad = ++n > SELECTOR_MAX;

		if (bad)
			err_set(e, ERR_INVALID, "a selector has at most %d terms", SELECTOR_MAX);
		if (bad || add_term(&s, term, &seen, e) < 0) {
			selector_done(&s);
			return err_wrap(e, "selector");
		}
	}
	buf_adds(&s.equal, "}");
	buf_adds(&s.unequal, "]");
	buf_adds(&s.keys, "}");
	if (buf_overflowed(&s.equal) || buf_overflowed(&s.unequal) || buf_overflowed(&s.keys)) {
		selector_done(&s);
		return err_set(e, ERR_INVALID, "the selector is too long");
	}
	*ret = s;
	return 0;
}

void selector_done(struct selector *s)
{
	buf_done(&s->equal);
	buf_done(&s->unequal);
	buf_done(&s->keys);
}

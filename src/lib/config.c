#include "lib/config.h"

#include <fcntl.h>
#include <string.h>

#include "lib/file.h"
#include "lib/str.h"

static int set_str(const struct setting *s, void *place, const char *value, struct err *e)
{
	if (!str_copy(place, s->size, value))
		return err_set(e, ERR_INVALID, "more than %zu bytes", s->size - 1);
	return 0;
}

static int set_int(const struct setting *s, void *place, const char *value, struct err *e)
{
	(void)s;
	return str_u64(value, place, e);
}

static int set_size(const struct setting *s, void *place, const char *value, struct err *e)
{
	(void)s;
	return str_size(value, place, e);
}

static int set_duration(const struct setting *s, void *place, const char *value, struct err *e)
{
	(void)s;
	return str_duration_ms(value, place, e);
}

static int set_bool(const struct setting *s, void *place, const char *value, struct err *e)
{
	static const struct {
		const char *word;
		bool means;
	} words[] = { { "yes", true }, { "no", false }, { "true", true }, { "false", false } };

	(void)s;
	for (size_t i = 0; i < array_len(words); i++)
		if (strcmp(value, words[i].word) == 0) {
			*(bool *)place = words[i].means;
			return 0;
		}
	return err_set(e, ERR_INVALID, "neither yes nor no: \"%.40s\"", value);
}

/* clang-format off */
static const struct {
	const char *name;	/* for the manual */
	size_t size;		/* of the member; 0: any */
	int (*set)(const struct setting *s, void *place, const char *value, struct err *e);
} types[] = {
	[CONFIG_STR]		= { "text",	0,			set_str },
	[CONFIG_INT]		= { "number",	sizeof(uint64_t),	set_int },
	[CONFIG_SIZE]		= { "size",	sizeof(uint64_t),	set_size },
	[CONFIG_DURATION]	= { "duration",	sizeof(uint64_t),	set_duration },
	[CONFIG_BOOL]		= { "yes|no",	sizeof(bool),		set_bool },
};
/* clang-format on */

static int set(const struct setting *s, void *record, const char *value, struct err *e)
{
	if (types[s->type].size && types[s->type].size != s->size)
		return err_set(e, ERR_INTERNAL, "setting %s has a member of %zu bytes", s->name,
			       s->size);
	if (types[s->type].set(s, (char *)record + s->offset, value, e) < 0)
		return err_wrap(e, "%s", s->name);
	return 0;
}

static int set_initial(const struct setting *settings, void *record, struct err *e)
{
	size_t count = 0;

	for (const struct setting *s = settings; s->type != CONFIG_END; s++, count++)
		if (s->initial && set(s, record, s->initial, e) < 0)
			return err_wrap(e, "default");
	if (count > CONFIG_SETTINGS_MAX)
		return err_set(e, ERR_INTERNAL, "more than %d settings", CONFIG_SETTINGS_MAX);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Cut the blanks off both ends, in place. */
static char *trim(char *s)
{
	size_t len;

	while (is_blank(*s))
		s++;
	len = strlen(s);
	while (len > 0 && is_blank(s[len - 1]))
		s[--len] = '\0';
	return s;
}

/* Which rows a file has set. */
struct seen {
	bool row[CONFIG_SETTINGS_MAX];
};

static int take_line(char *line, const struct setting *settings, struct seen *seen, void *record,
		     struct err *e)
{
	char *name = trim(line), *equals = strchr(name, '='), *value;

	if (!*name || *name == '#')
		return 0;
	if (!equals)
		return err_set(e, ERR_INVALID, "not `name = value`: \"%.60s\"", name);
	*equals = '\0';
	name = trim(name);
	value = trim(equals + 1);
	for (const struct setting *s = settings; s->type != CONFIG_END; s++) {
		if (strcmp(s->name, name) != 0)
			continue;
		if (seen->row[s - settings])
			return err_set(e, ERR_INVALID, "%s is set twice", name);
		seen->row[s - settings] = true;
		return set(s, record, value, e);
	}
	err_set(e, ERR_INVALID, "no setting is called \"%.60s\"", name);
	return err_fix(e, "Correct the name or remove the line; the manual lists all settings.");
}

static int take_lines(const char *name, char *text, const struct setting *settings,
		      struct seen *seen, void *record, struct err *e)
{
	unsigned number = 1;

	for (char *line = text, *next; line; line = next, number++) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (take_line(line, settings, seen, record, e) < 0)
			return err_wrap(e, "%s:%u", name, number);
	}
	return 0;
}

int config_parse(const char *name, const char *text, size_t len, const struct setting *settings,
		 void *record, struct err *e)
{
	cleanup(buf_done) struct buf copy = buf_make(CONFIG_FILE_MAX + 1);
	struct seen seen = { 0 };

	if (memchr(text, '\0', len))
		return err_set(e, ERR_INVALID, "%s: has a NUL byte in it", name);
	buf_add(&copy, text, len);
	if (buf_overflowed(&copy))
		return err_set(e, ERR_TOO_LARGE, "%s: more than %lu bytes", name, CONFIG_FILE_MAX);
	if (set_initial(settings, record, e) < 0 ||
	    (copy.data && take_lines(name, copy.data, settings, &seen, record, e) < 0))
		return -1;
	for (const struct setting *s = settings; s->type != CONFIG_END; s++)
		if (!s->initial && !seen.row[s - settings]) {
			err_set(e, ERR_INVALID, "%s: %s is not set", name, s->name);
			return err_fix(e, "Add a line `%s = ...`: %s", s->name, s->help);
		}
	return 0;
}

int config_load(const char *path, const struct setting *settings, void *record, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(CONFIG_FILE_MAX + 1);

	if (file_read(AT_FDCWD, path, &text, e) < 0)
		return err_wrap(e, "settings");
	return config_parse(path, buf_str(&text), text.len, settings, record, e);
}

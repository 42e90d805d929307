/*
 * Settings of a program, by table: one row says the name, the type, the place
 * in a plain struct, the default and the sentence for the manual.
 *
 * A file is lines of `name = value`. Empty lines and lines that begin with '#'
 * are nothing; the value is the rest of the line, without the blanks around it.
 * An unknown name, a name given twice and a value that does not fit are errors
 * that name the file and the line: a typing mistake must not pass in silence.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define CONFIG_FILE_MAX     (64UL * 1024)
#define CONFIG_SETTINGS_MAX 64

enum config_type {
	CONFIG_END,
	CONFIG_STR,      /* char[size] */
	CONFIG_INT,      /* uint64_t */
	CONFIG_SIZE,     /* uint64_t, bytes: 512m, 20g */
	CONFIG_DURATION, /* uint64_t, milliseconds: 30s, 5m */
	CONFIG_BOOL      /* bool: yes, no */
};

struct setting {
	const char *name;
	enum config_type type;
	size_t offset;
	size_t size;
	const char *initial; /* as it would be written; NULL: the file must say it */
	const char *help;    /* one sentence */
};

/* clang-format off */
#define SETTING(kind, record, member, initial, help) \
	{ #member, kind, offsetof(struct record, member), \
	  sizeof(((struct record *)0)->member), initial, help }
#define SETTING_END \
	{ .type = CONFIG_END }
/* clang-format on */

/* Defaults, then the file, then a look whether everything that must be said was said. */
must_check int config_load(const char *path, const struct setting *settings, void *record,
			   struct err *e);

/* The same from text; `name` stands for the file in messages. */
must_check int config_parse(const char *name, const char *text, size_t len,
			    const struct setting *settings, void *record, struct err *e);

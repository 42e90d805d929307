/*
 * Command line options, by table: one row says the names, the type, the place
 * in a plain struct and the sentence for the help. getopt_long() does the rest.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"

#define OPTIONS_MAX 32 /* rows of all sets of one command together */

enum option_type {
	OPTION_END,
	OPTION_FLAG,     /* bool */
	OPTION_TEXT,     /* const char *, points into argv */
	OPTION_NUMBER,   /* uint64_t */
	OPTION_SIZE,     /* uint64_t, bytes */
	OPTION_DURATION, /* uint64_t, milliseconds */
	OPTION_CPUS,     /* uint64_t, thousandths: "1.5" is 1500 */
	OPTION_LIST      /* struct strv, one item each time it is given */
};

struct option_row {
	const char *name;
	char letter; /* 0: none */
	enum option_type type;
	size_t offset;
	const char *value; /* what the help calls its argument; NULL for a flag */
	const char *help;
};

/* clang-format off */
#define OPTION(kind, record, member, name, letter, value, help) \
	{ name, letter, kind, offsetof(struct record, member), value, help }
#define OPTION_ROWS_END { .type = OPTION_END }
/* clang-format on */

/* Rows and the record they fill. The record is zeroed by the caller. */
struct option_set {
	const struct option_row *rows; /* NULL: none */
	void *record;
};

/* The words to parse, the first of them the program's or command's own. */
struct option_line {
	int argc;
	char **argv;
	size_t own;          /* see options_parse() */
	const char *command; /* whose help has them; NULL: none */
};

/*
 * Take the options out of the line; what is left goes to `args`. After `own` arguments the rest
 * is for another program and is left alone, dashes and all; 0: all are ours. A lone `--` does
 * the same at once.
 */
must_check int options_parse(const struct option_line *line, const struct option_set *sets,
			     size_t count, struct strv *args, struct err *e);
void options_done(const struct option_set *set); /* the lists */

/* Two columns, indented, for the help. */
void options_help(struct buf *out, const struct option_row *rows);

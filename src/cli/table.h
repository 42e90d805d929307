/*
 * A table for people: columns as wide as their widest cell, two blanks apart.
 * Control characters in a cell are shown as '?': a name from the server must
 * not drive the terminal.
 */
#pragma once

#include "lib/buf.h"
#include "lib/strv.h"

#define TABLE_COLUMNS_MAX 16
#define TABLE_TEXT_MAX    (16UL * 1024 * 1024)

/* By the numbers a terminal knows them by. */
enum colour {
	COLOUR_RED = 31,
	COLOUR_GREEN,
	COLOUR_YELLOW,
	COLOUR_BLUE
};

struct word_colour {
	const char *word; /* NULL ends a list */
	enum colour colour;
};

struct table {
	size_t columns;
	struct strv cells; /* row by row, the titles first */
	/* The widest line: last cells are cut first, first ones never; 0: any. */
	size_t fit;
	const char *coloured;              /* title of the column with the words of `colours` */
	const struct word_colour *colours; /* NULL: none, as for a program */
};

struct table table_make(const char *const titles[]); /* ended by NULL */
void table_done(struct table *t);
void table_add(struct table *t, const char *cell); /* the next cell */
void table_addf(struct table *t, const char *fmt, ...) printf_like(2, 3);
/* Rows by their keys, one for each in the order they were added; equal ones stay as they are. */
void table_sort(struct table *t, const struct strv *keys);
void table_print(const struct table *t, struct buf *out);

/* "1.5 GiB", "340 kB"-like short forms, in binary units. */
#define TABLE_SIZE_TEXT 16
void table_size_text(uint64_t bytes, char out[TABLE_SIZE_TEXT]);

/* How long from one of the server's times to another, like 45s, 10m, 3h, 12d; "" if one is none. */
void table_span_text(const char *from, const char *to, char out[TABLE_SIZE_TEXT]);

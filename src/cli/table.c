#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/str.h"

#define COLUMN_MIN 4 /* no column is made narrower */

struct table table_make(const char *const titles[])
{
	struct table t = { 0 };

	for (; t.columns < TABLE_COLUMNS_MAX && titles[t.columns]; t.columns++)
		strv_add(&t.cells, titles[t.columns]);
	return t;
}

void table_done(struct table *t)
{
	strv_done(&t->cells);
}

void table_add(struct table *t, const char *cell)
{
	strv_add(&t->cells, cell);
}

void table_addf(struct table *t, const char *fmt, ...)
{
	char text[512]; /* longer cells are cut */
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	table_add(t, text);
}

struct row {
	const char *key;
	size_t at; /* among the rows as they were added */
};

static int compare_rows(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	int order = strcmp(x->key, y->key);

	return order ? order : (x->at > y->at) - (x->at < y->at);
}

void table_sort(struct table *t, const struct strv *keys)
{
	cleanup(free_ptr) struct row *rows = xcalloc(keys->len + 1, sizeof(*rows));
	cleanup(free_ptr) char **old = xcalloc(t->cells.len + 1, sizeof(*old));
	size_t bytes = t->columns * sizeof(*old);

	for (size_t i = 0; i < keys->len; i++)
		rows[i] = (struct row){ keys->items[i], i };
	qsort(rows, keys->len, sizeof(*rows), compare_rows);
	for (size_t i = 0; i < t->cells.len; i++)
		old[i] = t->cells.items[i];
	for (size_t i = 0; i < keys->len; i++) /* row 0 has the titles */
		memcpy(t->cells.items + (i + 1) * t->columns, old + (rows[i].at + 1) * t->columns,
		       bytes);
}

/* Characters, not bytes. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s += str_char_at(s).len)
		n++;
	return n;
}

static void add_clean(struct buf *out, const char *s, size_t room)
{
	bool whole = width(s) <= room;
	size_t left = whole ? room : room - 2;

	for (struct str_char c; *s && left > 0; s += c.len, left--) {
		c = str_char_at(s);
		buf_add(out, c.control ? "?" : s, c.control ? 1 : c.len);
	}
	buf_adds(out, whole ? "" : "..");
}

/* The last column is a remark and gives first; then the widest, until a line fits. */
static void narrow(const struct table *t, size_t widest[])
{
	size_t line = 2 * (t->columns - 1);

	for (size_t i = 0; i < t->columns; i++)
		line += widest[i];
	for (; t->fit && line > t->fit; line--) {
		size_t last = t->columns - 1, most = widest[last] > COLUMN_MIN ? last : 0;

		for (size_t i = 1; most != last && i < last; i++)
			if (widest[i] > COLUMN_MIN && (!most || widest[i] > widest[most]))
				most = i;
		if (!most)
			return;
		widest[most]--;
	}
}

/* Empty cells at the end of a row leave no blanks behind. */
static void end_line(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buf_adds(out, "\n");
}

/* NULL: as any other text is. */
static const struct word_colour *colour_of(const struct table *t, size_t cell)
{
	const struct word_colour *c = t->colours;

	if (!c || cell < t->columns || strcmp(t->cells.items[cell % t->columns], t->coloured) != 0)
		return NULL;
	while (c->word && strcmp(c->word, t->cells.items[cell]) != 0)
		c++;
	return c->word ? c : NULL;
}

static void add_cell(const struct table *t, size_t cell, size_t room, struct buf *out)
{
	const struct word_colour *c = colour_of(t, cell);

	if (c)
		buf_addf(out, "\033[%dm", (int)c->colour);
	add_clean(out, t->cells.items[cell], room);
	if (c)
		buf_adds(out, "\033[0m");
}

void table_print(const struct table *t, struct buf *out)
{
	size_t widest[TABLE_COLUMNS_MAX] = { 0 };

	for (size_t i = 0; i < t->cells.len; i++)
		if (width(t->cells.items[i]) > widest[i % t->columns])
			widest[i % t->columns] = width(t->cells.items[i]);
	narrow(t, widest);
	for (size_t i = 0; i < t->cells.len; i++) {
		size_t column = i % t->columns, has = width(t->cells.items[i]);
		size_t room = has < widest[column] ? widest[column] - has : 0;

		add_cell(t, i, widest[column], out);
		if (column == t->columns - 1)
			end_line(out);
		else
			buf_addf(out, "%*s", (int)room + 2, "");
	}
}

void table_size_text(uint64_t bytes, char out[TABLE_SIZE_TEXT])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	size_t unit = 0;
	uint64_t tenths;

	/* Tenths of the unit above, rounded down; no number over 1023.9. */
	for (tenths = 0; bytes >= 1024 && unit + 1 < array_len(units); unit++) {
		tenths = (bytes % 1024) * 10 / 1024;
		bytes /= 1024;
	}
	if (unit == 0 || bytes >= 100)
		snprintf(out, TABLE_SIZE_TEXT, "%llu %s", (unsigned long long)bytes, units[unit]);
	else
		snprintf(out, TABLE_SIZE_TEXT, "%llu.%llu %s", (unsigned long long)bytes,
			 (unsigned long long)tenths, units[unit]);
}

static bool read_time(const char *text, time_t *ret)
{
	struct tm tm = { 0 };

	if (!strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
		return false;
	*ret = timegm(&tm);
	return true;
}

void table_span_text(const char *from, const char *to, char out[TABLE_SIZE_TEXT])
{
	static const struct {
		long long below, seconds;
		char unit;
	} units[] = {
		{ 120, 1, 's' },
		{ 120LL * 60, 60, 'm' },
		{ 48LL * 3600, 3600, 'h' },
		{ INT64_MAX, 86400, 'd' },
	};
	time_t begin, end;
	long long span;
	size_t i = 0;

	out[0] = '\0';
	if (!read_time(from, &begin) || !read_time(to, &end))
		return;
	span = end > begin ? end - begin : 0; /* clocks differ */
	while (span >= units[i].below)
		i++;
	snprintf(out, TABLE_SIZE_TEXT, "%lld%c", span / units[i].seconds, units[i].unit);
}

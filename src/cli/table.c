#include "cli/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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

/* Characters, not bytes: continuation bytes of UTF-8 take no room. */
static size_t width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

static void add_clean(struct buf *out, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		buf_add(out, c < 0x20 || c == 0x7f ? "?" : s, 1);
	}
}

/* Empty cells at the end of a row leave no blanks behind. */
static void end_line(struct buf *out)
{
	while (out->len > 0 && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
	buf_adds(out, "\n");
}

void table_print(const struct table *t, struct buf *out)
{
	size_t widest[TABLE_COLUMNS_MAX] = { 0 };

	for (size_t i = 0; i < t->cells.len; i++)
		if (width(t->cells.items[i]) > widest[i % t->columns])
			widest[i % t->columns] = width(t->cells.items[i]);
	for (size_t i = 0; i < t->cells.len; i++) {
		size_t column = i % t->columns, room = widest[column] - width(t->cells.items[i]);

		add_clean(out, t->cells.items[i]);
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

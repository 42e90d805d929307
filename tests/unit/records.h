/*
 * The matrix tests compare the whole record: what an event changed of it is written as text,
 * and each line is compared with a table. A line that differs is a change of behaviour: read
 * it, then write it there.
 */
#pragma once

#include <inttypes.h>
#include <stdarg.h>

#include "core/constants.h"
#include "test.h"

#define RECORDS_TIME UINT64_C(1000000000) /* times are written from here */

struct records {
	const char *const *want;
	size_t count, next;
	char line[512];
	size_t len;
};

static inline void records_add(struct records *r, const char *fmt, ...) printf_like(2, 3);

static inline void records_add(struct records *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	r->len += (size_t)vsnprintf(r->line + r->len, sizeof(r->line) - r->len, fmt, ap);
	va_end(ap);
	CHECK(r->len < sizeof(r->line));
}

/* A number that is another now; small ones as they are, times as a distance. */
static inline void records_number(struct records *r, const char *name, uint64_t was, uint64_t is)
{
	if (was == is)
		return;
	if (is < RECORDS_TIME / 2)
		records_add(r, " %s=%" PRIu64, name, is);
	else
		records_add(r, " %s%+" PRId64, name, (int64_t)(is - RECORDS_TIME));
}

static inline void records_text(struct records *r, const char *name, const char *was,
				const char *is)
{
	if (strcmp(was, is) != 0)
		records_add(r, " %s=\"%s\"", name, is);
}

static inline void records_end(struct records *r)
{
	const char *want = r->next < r->count ? r->want[r->next] : "";

	if (strcmp(r->line, want) != 0)
		test_fail(__FILE__, __LINE__, "row %zu: \"%s\", not \"%s\"", r->next, r->line,
			  want);
	r->next++;
	r->len = 0;
	r->line[0] = '\0';
}

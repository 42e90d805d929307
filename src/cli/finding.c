#include "cli/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/table.h"

#define GROW 64

/* clang-format off */
static const char *const verdicts[VERDICTS] = {
	[VERDICT_UNKNOWN]	= "unknown",
	[VERDICT_HELD]		= "held",
	[VERDICT_OWN]		= "own",
	[VERDICT_THROUGH]	= "through",
};
/* clang-format on */

void findings_done(struct findings *f)
{
	free(f->items);
	*f = (struct findings){ 0 };
}

struct finding *findings_add(struct findings *f, const char *name, const char *stands_for,
			     const char *tries)
{
	struct finding *x;

	if (f->len % GROW == 0) {
		struct finding *more = xcalloc(f->len + GROW, sizeof(*more));

		if (f->len)
			memcpy(more, f->items, f->len * sizeof(*more));
		free(f->items);
		f->items = more;
	}
	x = &f->items[f->len++];
	snprintf(x->name, sizeof(x->name), "%s", name);
	snprintf(x->stands_for, sizeof(x->stands_for), "%s", stands_for);
	snprintf(x->tries, sizeof(x->tries), "%s", tries);
	snprintf(x->note, sizeof(x->note), "no answer");
	return x;
}

struct finding *findings_find(const struct findings *f, const char *name)
{
	for (size_t i = 0; i < f->len; i++)
		if (strcmp(f->items[i].name, name) == 0)
			return &f->items[i];
	return NULL;
}

static bool is_through(const struct finding *x)
{
	return x->verdict == VERDICT_THROUGH || x->verdict == VERDICT_UNKNOWN;
}

size_t findings_through(const struct findings *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->len; i++)
		n += is_through(&f->items[i]);
	return n;
}

void finding_set(struct finding *f, enum verdict v, const char *fmt, ...)
{
	va_list args;

	f->verdict = v;
	va_start(args, fmt);
	vsnprintf(f->note, sizeof(f->note), fmt, args);
	va_end(args);
}

enum verdict verdict_by_name(const char *name)
{
	for (size_t i = 0; i < VERDICTS; i++)
		if (strcmp(verdicts[i], name) == 0)
			return (enum verdict)i;
	return VERDICT_UNKNOWN;
}

void findings_print(const struct findings *f, struct buf *out)
{
	static const char *const titles[] = { "", "PROBE", "STANDS FOR", "TRIES", "SEEN", NULL };
	cleanup(table_done) struct table t = table_make(titles);

	for (size_t i = 0; i < 2 * f->len; i++) { /* what got through stands at the end */
		const struct finding *x = &f->items[i % f->len];

		if (is_through(x) != i / f->len)
			continue;
		table_add(&t, is_through(x) ? "THROUGH" : verdicts[x->verdict]);
		table_add(&t, x->name);
		table_add(&t, x->stands_for);
		table_add(&t, x->tries);
		table_add(&t, x->note);
	}
	table_print(&t, out);
}

void findings_json(const struct findings *f, struct buf *out)
{
	json_open(out, '[');
	for (size_t i = 0; i < f->len; i++) {
		const struct finding *x = &f->items[i];

		json_open(out, '{');
		json_str(out, "name", x->name);
		json_str(out, "stands_for", x->stands_for);
		json_str(out, "tries", x->tries);
		json_str(out, "verdict", verdicts[x->verdict]);
		json_bool(out, "through", is_through(x));
		json_bytes(out, "seen", x->note, strlen(x->note));
		buf_adds(out, "}");
	}
	buf_adds(out, "]");
}

#include "lib/strv.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void strv_done(struct strv *v)
{
	for (size_t i = 0; i < v->len; i++)
		free(v->items[i]);
	free(v->items);
	*v = (struct strv){ 0 };
}

static void strv_take(struct strv *v, char *s)
{
	v->items = xrealloc(v->items, (v->len + 2) * sizeof(*v->items));
	v->items[v->len++] = s;
	v->items[v->len] = NULL;
}

void strv_add(struct strv *v, const char *s)
{
	strv_take(v, xstrdup(s));
}

void strv_addf(struct strv *v, const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		abort();
	strv_take(v, s);
}

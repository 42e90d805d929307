/* A list of the server's, page by page: each item to a function, or all of them as a table. */
#pragma once

#include "cli/client.h"
#include "cli/table.h"

struct list {
	const char *member; /* of the reply, an array */
	const char *titles[TABLE_COLUMNS_MAX + 1];
	/* Adds a row. */
	void (*add)(struct table *t, const struct json *item);

	const char *time; /* rows stand in the order of this member; NULL: as they come */
	/* See struct table; on a terminal only, and colours only without NO_COLOR. */
	size_t fit;
	const char *coloured;
	const struct word_colour *colours;
};

/* With --json the server's own words instead, in its order, a page a line. */
must_check int list_show(const struct context *c, const char *path, const struct list *l,
			 struct err *e);

typedef int list_fn(void *arg, const struct client_reply *page, struct err *e);
must_check int list_pages(const struct context *c, const char *path, list_fn *on_page, void *arg,
			  struct err *e);

#include "cli/list.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/say.h"

#define AFTER_MAX 1024

int list_pages(const struct context *c, const char *path, list_fn *on_page, void *arg,
	       struct err *e)
{
	cleanup(buf_done) struct buf after = buf_make(AFTER_MAX);
	bool unreadable = false;

	do {
		cleanup(client_reply_done) struct client_reply page = { 0 };
		cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);
		const char *next;

		buf_adds(&url, path);
		if (after.len) {
			buf_addf(&url, "%cafter=", strchr(path, '?') ? '&' : '?');
			fetch_escape(&url, buf_str(&after));
		}
		if (client_call(c, "GET", buf_str(&url), NULL, &page, e) < 0 ||
		    on_page(arg, &page, e) < 0)
			return -1;
		unreadable |= json_get_int(page.tree, "unreadable") > 0;
		next = json_get_str(page.tree, "next");
		if (next[0] && (strcmp(next, buf_str(&after)) == 0 || strlen(next) > AFTER_MAX))
			return err_set(e, ERR_INTERNAL, "the server's list does not go on");
		buf_clear(&after);
		buf_adds(&after, next);
	} while (after.len);
	if (unreadable)
		say("records that cannot be read are left out; `berth check` or berthd's log "
		    "names them");
	return 0;
}

struct show {
	const struct context *c;
	const struct list *l;
	struct table *t;
	struct strv times; /* of the rows */
};

static void show_done(struct show *s)
{
	strv_done(&s->times);
}

static int show_page(void *arg, const struct client_reply *page, struct err *e)
{
	struct show *s = arg;
	const struct json *items = json_get(page->tree, s->l->member);

	if (s->c->json)
		return client_print(page, e);
	for (size_t i = 0; i < json_len(items); i++) {
		s->l->add(s->t, json_at(items, i));
		if (s->l->time)
			strv_add(&s->times, json_get_str(json_at(items, i), s->l->time));
	}
	return 0;
}

static void for_terminal(struct table *t, const struct list *l)
{
	const char *no = getenv("NO_COLOR"); /* https://no-color.org: empty is as if unset */

	t->fit = l->fit;
	t->coloured = l->coloured;
	t->colours = no && no[0] ? NULL : l->colours;
}

int list_show(const struct context *c, const char *path, const struct list *l, struct err *e)
{
	cleanup(table_done) struct table t = table_make(l->titles);
	cleanup(buf_done) struct buf out = buf_make(TABLE_TEXT_MAX);
	cleanup(show_done) struct show s = { c, l, &t, { 0 } };

	if (isatty(STDOUT_FILENO)) /* a program wants whole names, and nothing but them */
		for_terminal(&t, l);
	if (list_pages(c, path, show_page, &s, e) < 0)
		return -1;
	if (c->json)
		return 0;
	if (l->time) /* the pages are in the order of ids, which are random */
		table_sort(&t, &s.times);
	table_print(&t, &out); /* what drives a terminal is only its own: see table.h */
	return say_bytes(buf_str(&out), out.len, e);
}

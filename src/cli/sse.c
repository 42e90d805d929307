#include "cli/sse.h"

#include <string.h>

#include "lib/str.h"

static void next_event(struct sse *s)
{
	buf_clear(&s->data);
	s->has_data = false;
	(void)!str_copy(s->name, sizeof(s->name), "message"); /* fits */
}

void sse_init(struct sse *s)
{
	s->line = buf_make(SSE_EVENT_MAX);
	s->data = buf_make(SSE_EVENT_MAX);
	next_event(s);
}

void sse_done(struct sse *s)
{
	buf_done(&s->line);
	buf_done(&s->data);
}

static int take_field(struct sse *s, const char *name, const char *value, size_t len, struct err *e)
{
	if (strcmp(name, "event") == 0) {
		if (!str_copy_bytes(s->name, sizeof(s->name), value, len))
			return err_set(e, ERR_INTERNAL, "the server sent a long event name");
	} else if (strcmp(name, "data") == 0) {
		if (s->has_data)
			buf_adds(&s->data, "\n");
		s->has_data = true;
		buf_add(&s->data, value, len);
	}
	return 0;
}

/* One line, without its end. */
static int take_line(struct sse *s, struct err *e)
{
	char *line = s->line.data;
	size_t len = s->line.len, skip;
	char *colon;
	int rc = 0;

	if (len > 0 && line[len - 1] == '\r')
		line[--len] = '\0';
	if (len == 0) {
		if (s->has_data)
			rc = s->on_event(s->arg, s->name, buf_str(&s->data), s->data.len, e);
		next_event(s);
		return rc;
	}
	colon = memchr(line, ':', len);
	if (!colon || colon == line) /* a field without a value, a comment */
		return 0;
	*colon = '\0';
	skip = (size_t)(colon + 1 - line);
	if (skip < len && line[skip] == ' ')
		skip++;
	return take_field(s, line, line + skip, len - skip, e);
}

int sse_feed(struct sse *s, const char *bytes, size_t len, struct err *e)
{
	while (len > 0) {
		const char *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) : len;

		buf_add(&s->line, bytes, n);
		if (buf_overflowed(&s->line) || buf_overflowed(&s->data))
			return err_set(e, ERR_TOO_LARGE, "the server sent a huge event");
		if (!end)
			return 0;
		if (take_line(s, e) < 0)
			return -1;
		buf_clear(&s->line);
		bytes += n + 1;
		len -= n + 1;
	}
	return 0;
}

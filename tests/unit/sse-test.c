#include "cli/sse.h"

#include "test.h"

struct seen {
	struct buf text;
	int refuse_after;
};

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	struct seen *s = arg;

	buf_addf(&s->text, "[%s:%zu:%s]", name, len, data);
	if (s->refuse_after && --s->refuse_after == 0)
		return err_set(e, ERR_CONFLICT, "enough");
	return 0;
}

/* In pieces of `step` bytes. */
static int feed(struct seen *s, const char *text, size_t step, struct err *e)
{
	cleanup(sse_done) struct sse sse = { .on_event = on_event, .arg = s };
	size_t len = strlen(text);

	s->text = buf_make(4096);
	sse_init(&sse);
	for (size_t at = 0; at < len; at += step)
		if (sse_feed(&sse, text + at, len - at < step ? len - at : step, e) < 0)
			return -1;
	return 0;
}

TEST(events_come_out_however_they_are_cut)
{
	static const char text[] = ": hello\n\n"
				   "event: stdout\ndata: one\ndata: two\n\n"
				   "data:bare\r\n\r\n"
				   "event: empty\n\n"
				   "id: 7\nevent: exit\nretry\ndata: {}\n\n"
				   "event: cut\ndata: never ended";

	for (size_t step = 1; step < sizeof(text); step++) {
		struct seen s = { 0 };
		struct err e;

		CHECK_OK(feed(&s, text, step, &e), &e);
		CHECK_STR(buf_str(&s.text), "[stdout:7:one\ntwo][message:4:bare][exit:2:{}]");
		buf_done(&s.text);
	}
}

TEST(the_listener_can_end_it)
{
	struct seen s = { .refuse_after = 1 };
	struct err e;

	CHECK_ERR(feed(&s, "data: a\n\ndata: b\n\n", 100, &e), &e, ERR_CONFLICT);
	CHECK_STR(buf_str(&s.text), "[message:1:a]");
	buf_done(&s.text);
}

TEST(a_long_name_is_refused)
{
	struct seen s = { 0 };
	char text[128] = "event: ";
	struct err e;

	memset(text + 7, 'x', 100);
	text[107] = '\n';
	CHECK_ERR(feed(&s, text, 1, &e), &e, ERR_INTERNAL);
	buf_done(&s.text);
}

TEST(a_line_without_end_has_a_ceiling)
{
	struct seen s = { 0 };
	cleanup(sse_done) struct sse sse = { .on_event = on_event, .arg = &s };
	static char chunk[1024 * 1024];
	struct err e = { 0 };
	int rc = 0;

	memset(chunk, 'x', sizeof(chunk));
	sse_init(&sse);
	for (size_t i = 0; i < 32 && rc == 0; i++)
		rc = sse_feed(&sse, chunk, sizeof(chunk), &e);
	CHECK_ERR(rc, &e, ERR_TOO_LARGE);
}

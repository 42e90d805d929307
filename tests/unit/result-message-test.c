/* Notes of a run: the sandbox writes them, and how much of them is read has an end. */
#include "berthd/exec/result-message.h"

#include <stdlib.h>

#include "test.h"

#define ERROR_NOTE "{\"type\": \"error\", \"name\": \"E\", \"message\": \"m\", \"traceback\": []}"

static bool may(struct note_budget *b, const char *line)
{
	return note_may_be_read(b, line, strlen(line));
}

TEST(notes_of_a_run_are_read_up_to_a_number)
{
	struct note_budget b = { 0 };

	for (int i = 0; i < NOTES_MAX; i++)
		CHECK(may(&b, "{}"));
	CHECK(!may(&b, "{}"));
	CHECK(!may(&b, "{\"type\": \"result\", \"text\": \"{\\\"type\\\": \\\"error\\\"\"}"));
}

TEST(notes_of_a_run_are_read_up_to_their_bytes)
{
	struct note_budget b = { 0 };
	char *line = xcalloc(1, NOTE_MAX);

	for (int i = 0; i < NOTES_BYTES_MAX / NOTE_MAX; i++)
		CHECK(note_may_be_read(&b, line, NOTE_MAX));
	CHECK(!note_may_be_read(&b, line, NOTE_MAX));
	CHECK(may(&b, "{}")); /* it fits */
	free(line);
}

/* An error is the last thing a run says, and whether it failed hangs on it. */
TEST(an_error_behind_too_many_notes_is_read_but_not_without_end)
{
	static char longer[NOTE_LATE_ERROR_MAX + 2];
	struct note_budget b = { .notes = NOTES_MAX };

	memset(longer, ' ', sizeof(longer) - 1);
	memcpy(longer, ERROR_NOTE, strlen(ERROR_NOTE));
	CHECK(!may(&b, longer));
	CHECK(may(&b, "{\"type\":\"error\",\"name\":\"E\"}"));
	for (int i = 1; i < NOTE_LATE_ERRORS_MAX; i++)
		CHECK(may(&b, ERROR_NOTE));
	CHECK(!may(&b, ERROR_NOTE));
}

static int read_note(const struct buf *note, struct buf *out, struct err *e)
{
	enum note_type type;

	return note_read(note->data, note->len, &type, out, e);
}

TEST(a_note_of_very_many_values_is_not_parsed)
{
	cleanup(buf_done) struct buf note = buf_make(NOTE_MAX), out = buf_make(NOTE_MAX);
	struct err e;

	buf_adds(&note, "{\"type\":\"result\",\"text\":\"t\",\"more\":[1");
	for (int i = 0; i <= NOTE_NODES_MAX; i++)
		buf_adds(&note, ",1");
	buf_adds(&note, "]}");
	CHECK_ERR(read_note(&note, &out, &e), &e, ERR_TOO_LARGE);
}

TEST(a_value_of_very_many_values_is_left_out_and_its_note_is_not)
{
	cleanup(buf_done) struct buf note = buf_make(NOTE_MAX), out = buf_make(NOTE_MAX);
	struct err e;

	/* Its quotes and commas are text here, and count there. */
	buf_adds(&note, "{\"type\":\"result\",\"text\":\"a,\\\"b\",\"chart\":\"[1,2]\"");
	buf_adds(&note, ",\"json\":\"[1");
	for (int i = 0; i <= NOTE_NODES_MAX; i++)
		buf_adds(&note, ",1");
	buf_adds(&note, "]\"}");
	CHECK_OK(read_note(&note, &out, &e), &e);
	CHECK_STR(out.data, "{\"text\":\"a,\\\"b\",\"chart\":[1,2],\"main\":false}");
}

#include "berthd/exec/result-message.h"

#include <string.h>

#include "lib/json.h"

/* The formats of a result that are text. Pictures are text, too: base64. */
static const char *const texts[] = { "text", "html", "png", "jpeg",
				     "svg", "markdown", "latex", "javascript" };
/* Those that are JSON, which comes as text: if it is none, only that format is missing. */
static const char *const values[] = { "json", "chart", "data" };

bool note_may_be_read(struct note_budget *b, const char *line, size_t len)
{
	static const char *const errors[] = { "{\"type\":\"error\"", "{\"type\": \"error\"" };

	if (b->notes < NOTES_MAX && len <= NOTES_BYTES_MAX - b->bytes) {
		b->notes++;
		b->bytes += len;
		return true;
	}
	if (b->late_errors == NOTE_LATE_ERRORS_MAX || len > NOTE_LATE_ERROR_MAX)
		return false;
	for (size_t i = 0; i < array_len(errors); i++)
		if (len > strlen(errors[i]) && memcmp(line, errors[i], strlen(errors[i])) == 0) {
			b->late_errors++;
			return true;
		}
	return false;
}

static bool is_one_line(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < ' ')
			return false;
	return true;
}

static void add_value(struct buf *out, const char *name, const char *text)
{
	struct json *value;
	struct err ignored;

	if (!text[0] || !is_one_line(text) ||
	    json_is_more_than(text, strlen(text), NOTE_NODES_MAX) ||
	    json_parse(text, strlen(text), &value, &ignored) < 0)
		return;
	json_free(&value);
	json_key(out, name);
	buf_adds(out, text);
}

static int add_result(const struct json *note, struct buf *out, struct err *e)
{
	size_t before = out->len;

	json_open(out, '{');
	for (size_t i = 0; i < array_len(texts); i++)
		if (json_is_text(json_get(note, texts[i])))
			json_str(out, texts[i], json_get_str(note, texts[i]));
	for (size_t i = 0; i < array_len(values); i++)
		add_value(out, values[i], json_get_str(note, values[i]));
	if (out->data[out->len - 1] == '{') {
		out->len = before; /* as if nothing had been written */
		out->data[before] = '\0';
		return err_set(e, ERR_INVALID, "a result in no format that is known");
	}
	if (json_get_bool(note, "truncated"))
		json_bool(out, "truncated", true);
	json_bool(out, "main", json_get_bool(note, "main"));
	buf_adds(out, "}");
	return buf_overflowed(out) ? err_set(e, ERR_TOO_LARGE, "a result that is too long") : 0;
}

static void add_error(const struct json *note, struct buf *out)
{
	const struct json *lines = json_get(note, "traceback");
	const char *name = json_get_str(note, "name");
	int64_t line = json_get_int(note, "line_number");
	size_t len = strlen(name);

	json_open(out, '{');
	json_str(out, "name", len > 0 && len <= NOTE_ERROR_NAME_MAX ? name : "Error");
	json_str(out, "message", json_get_str(note, "message"));
	json_key(out, "traceback");
	json_open(out, '[');
	for (size_t i = 0; i < json_len(lines) && i < NOTE_TRACEBACK_MAX; i++) {
		if (i > 0)
			buf_adds(out, ",");
		json_add_string(out, json_text(json_at(lines, i)));
	}
	buf_adds(out, "]");
	if (line > 0)
		json_int(out, "line_number", line);
	buf_adds(out, "}");
}

static void free_note(struct json **note)
{
	if (*note)
		json_free(note);
}

int note_read(const char *line, size_t len, enum note_type *type, struct buf *out, struct err *e)
{
	cleanup(free_note) struct json *note = NULL;
	const char *name;

	if (len > NOTE_MAX)
		return err_set(e, ERR_TOO_LARGE, "a note of more than %d bytes", NOTE_MAX);
	if (json_is_more_than(line, len, NOTE_NODES_MAX))
		return err_set(e, ERR_TOO_LARGE, "a note of more than %d values", NOTE_NODES_MAX);
	if (json_parse(line, len, &note, e) < 0)
		return -1;
	name = json_get_str(note, "type");
	if (strcmp(name, "error") == 0) {
		*type = NOTE_ERROR;
		add_error(note, out);
		return 0;
	}
	if (strcmp(name, "result") != 0)
		return err_set(e, ERR_INVALID, "a note of a type that is not known");
	*type = NOTE_RESULT;
	return add_result(note, out, e);
}

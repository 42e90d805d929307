#include "berthd/exec/code-notes.h"

#include <string.h>

/* What a run says in one line, if it is within the limits. */
static bool take_note(struct code_run *r)
{
	cleanup(buf_done) struct buf json = buf_make((size_t)NOTE_MAX * 2);
	enum note_type type;
	struct err ignored;

	if (!note_may_be_read(&r->notes, buf_str(&r->line), r->line.len) ||
	    note_read(buf_str(&r->line), r->line.len, &type, &json, &ignored) < 0) {
		r->results_dropped++;
		return false;
	}
	if (type == NOTE_ERROR) {
		buf_clear(&r->error);
		buf_add(&r->error, json.data, json.len);
		return r->sink->note(r, type, &json);
	}
	if (r->results == CODE_RESULTS_MAX ||
	    json.len > CODE_RESULTS_BYTES_MAX - r->results_bytes) {
		r->results_dropped++;
		return false;
	}
	r->results++;
	r->results_bytes += json.len;
	return r->sink->note(r, type, &json);
}

bool code_notes_take(struct code_run *r, const uint8_t *data, size_t len)
{
	bool full = false;

	while (len > 0) {
		const uint8_t *eol = memchr(data, '\n', len);
		size_t n = eol ? (size_t)(eol - data) : len;

		if (!r->skipping)
			buf_add(&r->line, data, n);
		if (buf_overflowed(&r->line)) {
			r->skipping = true;
			buf_done(&r->line);
			r->line = buf_make(NOTE_MAX + 1);
		}
		data += n;
		len -= n;
		if (!eol)
			continue;
		data++;
		len--;
		if (r->skipping)
			r->results_dropped++;
		else
			full |= take_note(r);
		r->skipping = false;
		buf_clear(&r->line);
	}
	return full;
}

/* Whole or cut, the same messages come out with the same verdict, none longer than allowed. */
#include <stdlib.h>
#include <string.h>

#include "http/ws-reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
	size_t events;
	unsigned bytes, verdict;
};

static void count(struct sum *sum, enum ws_event event, const struct ws_reader *r)
{
	const struct buf *b = event <= WS_BINARY ? &r->message : &r->control;

	if (r->message.len > WS_MESSAGE_MAX || r->control.len > WS_CONTROL_MAX)
		abort();
	sum->events++;
	if (event == WS_CLOSE || event == WS_BAD)
		sum->verdict = sum->verdict * 31 + r->close_code;
	for (size_t i = 0; i < b->len && event < WS_CLOSE; i++)
		sum->bytes = sum->bytes * 31 + (unsigned char)b->data[i];
}

static struct sum judge(const uint8_t *data, size_t size, size_t piece)
{
	struct ws_reader r;
	struct sum sum = { 0 };
	enum ws_event event = WS_NOTHING;

	ws_reader_init(&r);
	for (size_t at = 0; at < size && event != WS_BAD;) {
		size_t used = 0, len = size - at < piece ? size - at : piece;
		char *copy = malloc(len ? len : 1); /* so that reading past it is seen */

		memcpy(copy, data + at, len);
		event = ws_reader_take(&r, copy, len, &used);
		free(copy);
		if (used > len || (event == WS_NOTHING && used < len))
			abort();
		at += used;
		if (event != WS_NOTHING)
			count(&sum, event, &r);
	}
	ws_reader_done(&r);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole = judge(data, size, size + 1);

	for (size_t piece = 1; piece <= 7; piece += 3) {
		struct sum cut = judge(data, size, piece);

		if (cut.events != whole.events || cut.bytes != whole.bytes ||
		    cut.verdict != whole.verdict)
			abort();
	}
	return 0;
}

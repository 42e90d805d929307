/* Whatever is in a journal's file: what was accepted can be written again, the same. */
#include <stdlib.h>
#include <string.h>

#include "berthd/journal/journal-format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_frames(const uint8_t *data, size_t size)
{
	struct journal_frame f;
	uint8_t again[JOURNAL_FRAME];
	uint64_t position = 0;

	while (size >= JOURNAL_FRAME && journal_frame_decode(data, position, &f)) {
		journal_frame_encode(again, &f);
		if (memcmp(again, data, sizeof(again)) != 0 || f.position != position)
			abort();
		if (size - JOURNAL_FRAME < f.len)
			return;
		data += JOURNAL_FRAME + f.len;
		size -= JOURNAL_FRAME + f.len;
		position += f.len;
	}
}

static void try_whole(const uint8_t *data, size_t size)
{
	cleanup(journal_head_done) struct journal_head h = { 0 }, same = { 0 };
	cleanup(buf_done) struct buf again = buf_make(1 << 20), third = buf_make(1 << 20);
	struct bytes prelude = { data, JOURNAL_PRELUDE };
	struct bytes slot = { data + JOURNAL_PRELUDE, JOURNAL_SLOT };
	struct journal_slot s;
	uint32_t head_len;
	struct err e;

	if (size < JOURNAL_HEAD_AT || journal_prelude_decode(prelude, &head_len, &e) < 0 ||
	    journal_slot_decode(slot, &s, &e) < 0 ||
	    size - JOURNAL_HEAD_AT < head_len ||
	    journal_head_decode((struct bytes){ data + JOURNAL_HEAD_AT, head_len }, &h, &e) < 0)
		return;
	/* What was understood can be written, and is understood as the same. */
	journal_begin_encode(&again, &h, &s);
	if (again.len < JOURNAL_HEAD_AT ||
	    journal_head_decode((struct bytes){ (uint8_t *)again.data + JOURNAL_HEAD_AT,
						again.len - JOURNAL_HEAD_AT },
				&same, &e) < 0)
		abort();
	journal_begin_encode(&third, &same, &s);
	if (third.len != again.len || memcmp(third.data, again.data, again.len) != 0)
		abort();
	try_frames(data + JOURNAL_HEAD_AT + head_len, size - JOURNAL_HEAD_AT - head_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_whole(data, size);
	try_frames(data, size);
	return 0;
}

/* A note that was accepted is one line of JSON again, whatever code in a sandbox wrote. */
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/result-message.h"
#include "lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(buf_done) struct buf out = buf_make((size_t)8 * NOTE_MAX);
	enum note_type type;
	struct json *again;
	struct err e;

	if (note_read((const char *)data, size, &type, &out, &e) < 0) {
		if (out.len > 0)
			abort();
		return 0;
	}
	if (memchr(out.data, '\n', out.len) || json_parse(out.data, out.len, &again, &e) < 0)
		abort();
	if (type == NOTE_ERROR && !json_get_str(again, "name")[0])
		abort();
	json_free(&again);
	return 0;
}

/* What was accepted can be written and read again, the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/files.h"
#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void same(const struct buf *again, const uint8_t *data, size_t size)
{
	if (again->len != size || memcmp(buf_str(again), data, size) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(buf_done) struct buf out = buf_make(1 << 20);
	struct bytes wire = { data, size };
	struct file_request q;
	struct file_entry x;
	struct file_change c;
	struct err e;

	file_failed_decode(wire, &e);
	if (!frame_guest_says(e.code))
		abort();
	if (file_request_decode(wire, &q, &e) == 0) {
		file_request_encode(&out, &q);
		same(&out, data, size);
	} else if (file_entry_decode(wire, &x, &e) == 0) {
		file_entry_encode(&out, &x);
		same(&out, data, size);
	} else if (file_change_decode(wire, &c, &e) == 0) {
		file_change_encode(&out, &c);
		same(&out, data, size);
	}
	return 0;
}

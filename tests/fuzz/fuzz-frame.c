/* Whatever comes over the wire, a frame's payload lies within it, and an error is one of ours. */
#include <stdlib.h>

#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct frame f;
	struct err e;
	ssize_t used = frame_next((struct bytes){ data, size }, &f, &e);

	if (used > 0 && (f.payload.data < data || f.payload.data + f.payload.len != data + used))
		abort();
	if (used > 0 && f.type == FRAME_ERROR) {
		frame_error(&f, &e);
		frame_guest_error(&f, &e);
		if (!frame_guest_says(e.code) || e.fix[0])
			abort();
	}
	return 0;
}

/* A request that was accepted can be written and read again, the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/context.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(context_request_done) struct context_request q = { 0 };
	cleanup(buf_done) struct buf again = buf_make(1 << 20);
	struct context_run run;
	struct err e;

	if (context_run_decode((struct bytes){ data, size }, &run, &e) == 0) {
		context_run_encode(&again, &run);
		if (again.len != size || memcmp(again.data, data, size) != 0)
			abort();
		return 0;
	}
	if (context_request_decode((struct bytes){ data, size }, &q, &e) < 0)
		return 0;
	context_request_encode(&again, &q);
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}

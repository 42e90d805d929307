/* A request that was accepted can be written and read again, the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/exec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(exec_request_done) struct exec_request q = { 0 };
	cleanup(buf_done) struct buf again = buf_make(1 << 20);
	struct exec_exit x;
	struct err e;

	if (exec_exit_decode((struct bytes){ data, size }, &x, &e) == 0 &&
	    !exec_kind_name(x.kind))
		abort();
	if (exec_request_decode((struct bytes){ data, size }, &q, &e) < 0)
		return 0;
	exec_request_encode(&again, &q);
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}

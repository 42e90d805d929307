/* A head lies within its bytes, and a cut one is never taken for whole. */
#include <stdlib.h>
#include <string.h>

#include "lib/reply-head.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reply_head head = { 0 };
	struct err e;
	ssize_t used = reply_head_parse((const char *)data, size, &head, &e);

	if (used > 0 && ((size_t)used > size || head.status < 0 || head.status > 999 ||
			 memcmp(data + used - 4, "\r\n\r\n", 4) != 0))
		abort();
	if (used > 0 && reply_head_parse((const char *)data, (size_t)used - 1, &head, &e) > 0)
		abort();
	return 0;
}

/* A config that was accepted can be written and read again, the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(image_config_done) struct image_config c = { 0 };
	cleanup(buf_done) struct buf again = buf_make(1 << 20);
	struct err e;

	if (image_config_decode((struct bytes){ data, size }, &c, &e) < 0)
		return 0;
	image_config_encode(&again, &c);
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}

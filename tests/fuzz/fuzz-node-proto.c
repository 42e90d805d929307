/* A packet that was accepted can be written and read again, the same. */
#include <stdlib.h>
#include <string.h>

#include "proto/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(buf_done) struct buf again = buf_make(NODE_PACKET_MAX * 2);
	union node_any any = { 0 };
	struct node_head h;
	struct err e;

	if (node_head_decode((struct bytes){ data, size }, &h, &e) < 0)
		return 0;
	if (h.kind == NODE_ERROR) {
		node_error_decode(&h, &e);
		return 0;
	}
	if (node_body_decode(&h, &any, &e) < 0)
		return 0;
	node_encode(&again, h.verb, h.kind, h.id, &any);
	if (again.len != size || memcmp(again.data, data, size) != 0)
		abort();
	return 0;
}

/* Whole or byte by byte, the same events come out, and their data ends where it says. */
#include <stdlib.h>
#include <string.h>

#include "cli/sse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sum {
	size_t events, bytes;
};

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	struct sum *sum = arg;

	(void)e;
	if (strlen(name) >= SSE_NAME_SIZE || data[len] != '\0')
		abort();
	sum->events++;
	sum->bytes += len;
	return 0;
}

static int feed(const char *data, size_t size, size_t step, struct sum *sum)
{
	cleanup(sse_done) struct sse s = { .on_event = on_event, .arg = sum };
	struct err e;
	int rc = 0;

	sse_init(&s);
	for (size_t at = 0; at < size && rc == 0; at += step)
		rc = sse_feed(&s, data + at, size - at < step ? size - at : step, &e);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sum whole = { 0 }, pieces = { 0 };

	if (feed((const char *)data, size, size ? size : 1, &whole) !=
		    feed((const char *)data, size, 1, &pieces) ||
	    whole.events != pieces.events || whole.bytes != pieces.bytes)
		abort();
	return 0;
}

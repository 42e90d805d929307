/* An expression and a text, parted by a newline: found or not, it is the same in any pieces. */
#include <stdlib.h>
#include <string.h>

#include "lib/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t n = end ? (size_t)(end - data) : size;
	cleanup(free_ptr) char *text = xcalloc(n + 1, 1);
	struct pattern_look whole = { 0 }, parts = { 0 };
	struct pattern p;
	bool found, again = false;
	struct err e;

	memcpy(text, data, n);
	if (pattern_read(text, size % 2, &p, &e) < 0 || !end)
		return 0;
	if (p.places > PATTERN_PLACES)
		abort();
	data += n + 1;
	size -= n + 1;
	found = pattern_find(&p, &whole, data, size) || pattern_find_end(&p, &whole);
	for (size_t i = 0; i < size && !again; i++)
		again = pattern_find(&p, &parts, data + i, 1);
	if (found != (again || pattern_find_end(&p, &parts)))
		abort();
	return 0;
}

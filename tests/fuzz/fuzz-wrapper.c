/* What an exec's id says about a wrapper: whatever it says, and of no other name. */
#include <stdlib.h>
#include <string.h>

#include "core/wrapper.h"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[256] = "", again[WRAPPER_EXEC_SIZE];
	struct instance i, other;

	memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
	if (!wrapper_exec_read(text, "main", &i))
		return 0;
	if (!wrapper_exec_is(text) || wrapper_exec_read(text, "mai", &other))
		abort();
	if (i.generation == 0 || strlen(i.id) > 23)
		return 0;
	wrapper_exec_id(again, "main", &i);
	if (!wrapper_exec_read(again, "main", &other) || other.generation != i.generation ||
	    strcmp(other.id, i.id) != 0)
		abort();
	return 0;
}

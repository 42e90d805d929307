/* Of any text the process named is one that stands in it, whole, behind the kernel's own words. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/kernel-log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kernel_record r = { 0 };
	char want[64];

	if (!kernel_record_parse((struct bytes){ data, size }, &r))
		return 0;
	if (r.killed < 0 || data[0] < '0' || data[0] > '9')
		abort();
	snprintf(want, sizeof(want), ": Killed process %d (", r.killed);
	/* with any number of zeros before it, which the kernel does not write */
	if (r.killed > 0 && !memmem(data, size, want, strlen(want)) &&
	    !memmem(data, size, ": Killed process 0", 18))
		abort();
	return 0;
}

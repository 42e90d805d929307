#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/sandbox.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What passed a check may go into a command line and a path: nothing else may pass. */
static void must_be_tame(const char *s, size_t room)
{
	if (strlen(s) >= room || s[0] == '-' || s[0] == '/' || strstr(s, "..") || strstr(s, "//"))
		abort();
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("._/:-@[]", *s))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xcalloc(1, size + 1);
	struct err e;

	if (size > 0)
		memcpy(text, data, size);
	if (image_name_check(text, &e) == 0)
		must_be_tame(text, IMAGE_NAME_SIZE);
	if (image_reference_check(text, &e) == 0)
		must_be_tame(text, IMAGE_REFERENCE_SIZE);
	if (sandbox_id_check(text, &e) == 0)
		must_be_tame(text, SANDBOX_ID_SIZE);
	free(text);
	return 0;
}

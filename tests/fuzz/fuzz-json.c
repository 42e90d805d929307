/* Whatever a stranger sends as JSON, the record is filled within its bounds or refused. */
#include <stdlib.h>
#include <string.h>

#include "lib/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct sample {
	char name[8];
	int64_t count;
	bool on;
	char *text;
	struct strv list, map;
};

static const struct json_field fields[] = {
	JSON_FIELD_STR(sample, name),
	JSON_FIELD_INT(sample, count),
	JSON_FIELD_BOOL(sample, on),
	JSON_FIELD_TEXT(sample, text),
	JSON_FIELD_STRV(sample, list),
	JSON_FIELD_MAP(sample, map),
	JSON_FIELD_END
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample s = { 0 };
	struct err e;

	if (json_read((const char *)data, size, fields, &s, &e) == 0 &&
	    strnlen(s.name, sizeof(s.name)) == sizeof(s.name))
		abort();
	free(s.text);
	strv_done(&s.list);
	strv_done(&s.map);
	return 0;
}

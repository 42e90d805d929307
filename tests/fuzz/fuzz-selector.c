/* Selectors come out of a query: whatever they are, what is made of them is JSON and an array. */
#include <stdlib.h>
#include <string.h>

#include "core/label.h"
#include "lib/json.h"
#include "lib/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_json(const struct buf *text)
{
	cleanup(json_free) struct json *tree = NULL;
	struct err e;

	if (utf8_valid_prefix(text->data, text->len) == text->len &&
	    json_parse(buf_str(text), text->len, &tree, &e) < 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(free_ptr) char *text = xcalloc(size + 1, 1);
	struct selector s;
	struct err e;

	if (size > 4096)
		return 0;
	memcpy(text, data, size);
	if (selector_read(text, &s, &e) < 0)
		return 0;
	must_be_json(&s.equal);
	must_be_json(&s.unequal);
	if (s.keys.data[0] != '{' || s.keys.data[s.keys.len - 1] != '}')
		abort();
	selector_done(&s);
	return 0;
}

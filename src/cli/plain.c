#include "cli/plain.h"

#include <string.h>

#include "lib/str.h"

static void add(struct buf *out, const char *s, size_t len, const char *kept)
{
	for (const char *end = s + len; s < end;) {
		struct str_char c = str_char_at(s);

		if (c.control && !(*s && strchr(kept, *s)))
			buf_addf(out, "\\u%04x", c.number);
		else
			buf_add(out, s, c.len);
		s += c.len;
	}
}

void plain_add(struct buf *out, const char *s)
{
	add(out, s, strlen(s), "");
}

void plain_add_lines(struct buf *out, const char *data, size_t len)
{
	add(out, data, len, "\n\t");
}

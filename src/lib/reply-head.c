#include "lib/reply-head.h"

#include <string.h>
#include <strings.h>

#include "lib/str.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int parse_status(const char *line, size_t len, int *ret, struct err *e)
{
	/* "HTTP/1.1 101" and then a blank and words, or nothing */
	if (len < 12 || memcmp(line, "HTTP/1.", 7) != 0 || !is_digit(line[7]) || line[8] != ' ' ||
	    !is_digit(line[9]) || !is_digit(line[10]) || !is_digit(line[11]) ||
	    (len > 12 && line[12] != ' '))
		return err_set(e, ERR_INTERNAL, "the answer is not HTTP/1.x");
	*ret = (line[9] - '0') * 100 + (line[10] - '0') * 10 + (line[11] - '0');
	return 0;
}

static int parse_field(const char *line, size_t len, struct reply_head *head, struct err *e)
{
	static const char name[] = "content-length:";
	char value[24];

	if (len < sizeof(name) - 1 || strncasecmp(line, name, sizeof(name) - 1) != 0)
		return 0;
	line += sizeof(name) - 1;
	len -= sizeof(name) - 1;
	while (len > 0 && (*line == ' ' || *line == '\t')) {
		line++;
		len--;
	}
	if (!str_copy_bytes(value, sizeof(value), line, len) ||
	    str_u64(value, &head->length, e) < 0)
		return err_set(e, ERR_INTERNAL, "the answer has a bad Content-Length");
	return 0;
}

ssize_t reply_head_parse(const char *data, size_t len, struct reply_head *ret, struct err *e)
{
	const char *end = memmem(data, len, "\r\n\r\n", 4);
	struct reply_head head = { 0 };

	if (!end)
		return 0;
	for (const char *line = data; line <= end;) {
		const char *stop = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
		size_t n = (size_t)(stop - line);

		if (line == data ? parse_status(line, n, &head.status, e) < 0
				 : parse_field(line, n, &head, e) < 0)
			return -1;
		line = stop + 2;
	}
	*ret = head;
	return end + 4 - data;
}

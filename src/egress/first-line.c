#include "egress/first-line.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX 16

static bool is_token(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool has_version(const char *data, size_t len)
{
	static const char word[] = "HTTP/";

	for (size_t i = 0; i + strlen(word) <= len; i++)
		if (strncasecmp(data + i, word, strlen(word)) == 0)
			return true;
	return false;
}

/*
 * The usual methods, or a line with a version: there are servers that take any method, and
 * blanks before it. A line without one that has begun with a method could still have it.
 */
enum look first_line_look(const char *data, size_t len, bool begun)
{
	const char *end = memchr(data, '\n', len);
	size_t line = end ? (size_t)(end - data) : len, i = 0;

	while (!begun && i < len && i < METHOD_MAX && data[i] >= 'A' && data[i] <= 'Z')
		i++;
	if ((i > 0 && i < len && data[i] == ' ') || has_version(data, line))
		return LOOK_HTTP;
	if (end)
		return LOOK_OTHER;
	if (begun)
		return LOOK_LINE;
	if (i == len && i < METHOD_MAX)
		return LOOK_METHOD;
	for (i = 0; i < len && (data[i] == ' ' || data[i] == '\t');)
		i++;
	while (i < len && is_token(data[i]))
		i++;
	return i == len || data[i] == ' ' || data[i] == '\t' ? LOOK_LINE : LOOK_OTHER;
}

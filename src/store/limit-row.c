#include "store/limit-row.h"

#include <inttypes.h>
#include <stdio.h>

const char *limits_text(const struct limits *l, char out[LIMITS_TEXT_SIZE])
{
	int at = 0;

	for (int i = 0; i < LIMIT_COUNT; i++)
		at += snprintf(out + at, LIMITS_TEXT_SIZE - (size_t)at, "%c%" PRId64,
			       i ? ',' : '{', l->of[i]);
	snprintf(out + at, LIMITS_TEXT_SIZE - (size_t)at, "}");
	return out;
}

#include "core/trace.h"

#include <stdio.h>
#include <string.h>

#define MAY_HAVE "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

int trace_check(const char *trace, struct err *e)
{
	size_t len = strlen(trace);

	if (len > 0 && len <= TRACE_MAX && strspn(trace, MAY_HAVE) == len)
		return 0;
	err_set(e, ERR_INVALID, "X-Trace-Id is not a trace id");
	return err_fix(e, "Send 1 to %d letters, digits, '_' and '-', or leave it out.", TRACE_MAX);
}

bool trace_request_id(const char *trace, const char *own, char *out, size_t size)
{
	int n = trace ? snprintf(out, size, "%s%c%s", trace, TRACE_SEPARATOR, own)
		      : snprintf(out, size, "%s", own);

	return n > 0 && (size_t)n < size;
}

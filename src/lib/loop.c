#include "lib/loop.h"

#include <stdarg.h>
#include <stdio.h>

int err_uv(struct err *e, int status, const char *fmt, ...)
{
	char what[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, ERR_INTERNAL, "%s: %s", what, uv_strerror(status));
}

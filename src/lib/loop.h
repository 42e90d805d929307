/* What the rest of lib/ must not know: libuv's statuses as our errors. */
#pragma once

#include <uv.h>

#include "lib/err.h"

int err_uv(struct err *e, int status, const char *fmt, ...) printf_like(3, 4);

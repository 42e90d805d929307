/* Why a pull failed: what skopeo said, and what to do about it. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

/* `said` is all of skopeo's standard error; it is written to. Always -1. */
int pull_error(const char *reference, struct buf *said, struct err *e);

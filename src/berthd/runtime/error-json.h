/* An error as every answer has it: {"code":…,"message":…,"remediation":…,"request_id":…} */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

void error_json(const char *request_id, const struct err *e, struct buf *out);

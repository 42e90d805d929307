/* The head of an HTTP reply, for the one request that is not libcurl's: the upgrade. */
#pragma once

#include <sys/types.h>

#include "lib/err.h"

struct reply_head {
	int status;
	uint64_t length; /* Content-Length; 0 if there is none */
};

/*
 * How many bytes the head takes with its empty line, 0 if it is not whole yet, -1 if this is
 * no HTTP/1.x reply.
 */
must_check ssize_t reply_head_parse(const char *data, size_t len, struct reply_head *ret,
				    struct err *e);

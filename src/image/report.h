/*
 * What the one who started us hears: records of struct node_image, each behind
 * its u32 length. Progress now and then, then one reply or one error.
 */
#pragma once

#include "lib/err.h"

#define REPORT_FD 4

struct report {
	uint64_t last_ms;
};

/* Says it only if the last time was long enough ago. */
void report_progress(struct report *r, const char *phase, uint64_t done, uint64_t total);
void report_done(const char *digest, uint64_t bytes);
void report_error(const struct err *why);

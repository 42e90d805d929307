/* The OCI engines on this machine, and which of them a new server gives to its sandboxes. */
#pragma once

#include "lib/base.h"

#define ENGINE_FRESH_DAYS 365 /* an engine that hostile code runs in is not older than this */
#define ENGINE_LINE_SIZE  128

struct engine {
	char line[ENGINE_LINE_SIZE]; /* what it says of its version */
	bool dated;                  /* a release with a date, the next four */
	unsigned year, month, day;
	int64_t age_days;
};

/* Ask runsc; false if it is not here. */
must_check bool engine_runsc(struct engine *ret);

/* Days between a date and now. */
int64_t engine_age_days(unsigned year, unsigned month, unsigned day);

/*
 * "runsc" if gVisor is here and fresh, else "crun". `why` is a sentence for the person who
 * installs: what the choice means, and what would change it.
 */
#define ENGINE_WHY_SIZE 240
const char *engine_default(char why[ENGINE_WHY_SIZE]);

/*
 * Refused requests that an operator wants to know of: a key that is none, a pass that was forged,
 * a path that leads out.
 *
 * They are counted per kind, source and sandbox in a window, so that a client that tries a
 * million times fills one row and not a table; and there is a most of sources, beyond which a
 * kind is counted as one. Nothing here has a clock or a lock.
 */
#pragma once

#include "core/sandbox.h"
#include "lib/err.h"
#include "lib/errno-map.h"

#define INCIDENT_KIND_SIZE   24
#define INCIDENT_SOURCE_SIZE 48 /* an IPv6 address, or INCIDENT_OTHERS */
#define INCIDENT_DETAIL_SIZE 160
#define INCIDENT_OTHERS      "others"
#define INCIDENT_SOURCES_MAX 256              /* rows of one window */
#define INCIDENT_WINDOW_MS   (60 * 60 * 1000) /* of one row */

struct incident {
	char kind[INCIDENT_KIND_SIZE];
	char source[INCIDENT_SOURCE_SIZE];
	char sandbox[SANDBOX_ID_SIZE]; /* "": it is about none */
	char detail[INCIDENT_DETAIL_SIZE];
	uint64_t first_ms, last_ms;
	uint64_t count;
};

/* Its kind, or NULL: most errors are none. */
const char *incident_kind(const struct err *e);

#define INCIDENT_ROWS (INCIDENT_SOURCES_MAX + 8) /* and one per kind for all others */

struct incident_window {
	uint64_t since_ms;
	size_t count;
	struct incident rows[INCIDENT_ROWS]; /* `count` of each: what was not taken yet */
};

/* Count one. True: the first of its row in this window. A window that is over is begun anew. */
bool incident_add(struct incident_window *w, const struct incident *one);

/* Take row `i` to be written: false if nothing was added to it since. */
bool incident_take(struct incident_window *w, size_t i, struct incident *ret);

/* It could not be written: it is counted again. */
void incident_put_back(struct incident_window *w, const struct incident *taken);

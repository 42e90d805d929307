/* What the hosts of a cell share beside their records. */
#pragma once

#include "store/store.h"

#define CELL_SECRET_SIZE 65 /* with the NUL */

/* The cell's secret: `fresh` if it has none yet, otherwise the one it has. */
must_check int store_cell_secret(struct store *s, const char *fresh, char ret[CELL_SECRET_SIZE],
				 struct err *e);

must_check int store_cell_now(struct store *s, uint64_t *ret_ms, struct err *e); /* since 1970 */

/* Where this host's peers reach it; "": nowhere. */
must_check int store_host_address(struct store *s, const char *host, const char *address,
				  struct err *e);

/* A host has an image's files, or has them no more. */
must_check int store_image_copy(struct store *s, const char *digest, const char *host, bool has,
				struct err *e);

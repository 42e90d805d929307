/*
 * A file or all that is in a directory, as a tar archive: files, directories
 * and symbolic links. What is none of these has no contents to carry and is
 * left out. Links are not followed, and nothing is opened that could wait.
 */
#pragma once

#include "lib/tar.h"

struct pack {
	int (*write)(void *data, const void *bytes, size_t len, struct err *e);
	void *data;
	uint64_t count; /* entries so far */

	/* Its own. */
	struct buf head;
	char *chunk;
	char path[TAR_PATH_SIZE]; /* in the archive */
};

/* Of a directory what is in it, with paths from there; of anything else itself, by its name. */
must_check int pack_path(struct pack *p, const char *path, struct err *e);

/*
 * A tar archive, unpacked below a directory and nowhere else: no path leads out
 * of it, no link on the way is followed, neither one that was there nor one
 * the archive brought. Each file appears whole. Owners are not restored.
 */
#pragma once

#include "lib/atomic-file.h"
#include "lib/tar.h"

struct unpack {
	int dir;        /* the caller's */
	uint32_t modes; /* which bits of a mode are taken over */
	uint64_t count; /* entries so far */

	/* Its own. */
	struct tar_reader reader;
	struct atomic_file file;
	struct tar_entry entry;
	int parent; /* of the entry; kept for the next one */
	char parent_path[TAR_PATH_SIZE];
};

void unpack_init(struct unpack *u, int dir, uint32_t modes);
void unpack_done(struct unpack *u);
must_check int unpack_feed(struct unpack *u, const void *bytes, size_t len, struct err *e);
must_check int unpack_end(struct unpack *u, struct err *e); /* was that all? */

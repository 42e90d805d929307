/*
 * A tar, plain or compressed, into the current directory, which must be the
 * root directory by then: whatever a path says, it cannot lead out.
 */
#pragma once

#include "image/report.h"
#include "lib/err.h"

#define UNPACK_ENTRIES_MAX 2000000
#define UNPACK_BYTES_MAX   (20ULL << 30) /* unless told otherwise */

/* One image, over all its layers. */
struct unpack {
	struct report *report;
	uint64_t max_bytes;
	uint64_t bytes;       /* written so far */
	uint64_t entries;     /* seen so far, */
	uint64_t entry_bytes; /* and what a disk keeps of them besides their bytes */
	uint64_t dir_bytes;   /* paths of directories: in memory until the end */
	uint64_t read, total; /* of the input; total is 0 if it is not known */
	size_t depth_max;     /* of a path, 0: any */
};

#define UNPACK_DIGEST_SIZE 72 /* "sha256:" and 64 digits */

/* All of what `fd` gives; the digest is of these bytes as they came. */
must_check int unpack_tar(struct unpack *u, int fd, char digest[UNPACK_DIGEST_SIZE],
			  struct err *e);

/* The same for a layer over others: first what it removes, then what it adds. */
must_check int unpack_layer(struct unpack *u, int fd, char digest[UNPACK_DIGEST_SIZE],
			    struct err *e);

#define ARCHIVE_MANIFEST "manifest.json"

/*
 * Whether it is no root filesystem but an image with its layers, as `docker save`
 * and `podman save` write them. `fd` is a file, read from its beginning again afterwards.
 */
must_check int unpack_is_layered(int fd, uint64_t max_bytes, bool *ret, struct err *e);

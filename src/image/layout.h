/* An OCI image layout on disk, as skopeo leaves it: the one image in it. */
#pragma once

#include "lib/err.h"
#include "proto/image.h"

#define LAYOUT_LAYERS_MAX 256

struct layout {
	char digest[80]; /* of the manifest */
	struct image_config config;
	int layers[LAYOUT_LAYERS_MAX];       /* open files, bottom first */
	char digests[LAYOUT_LAYERS_MAX][80]; /* "": its bytes are not promised to be any */
	size_t count;
	uint64_t bytes; /* of all layers, as they lie there */
};

/* `ret` must be zeroed; layout_close() it in any case. */
must_check int layout_open(const char *dir, struct layout *ret, struct err *e);

/* The same of an unpacked archive, with manifest.json (docker save) or index.json (OCI). */
must_check int layout_open_archive(const char *dir, struct layout *ret, struct err *e);
void layout_close(struct layout *l);

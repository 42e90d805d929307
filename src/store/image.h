/* Images: a name of ours, and the digest it means now. */
#pragma once

#include "core/image-name.h"
#include "store/store.h"

struct image {
	char name[IMAGE_NAME_SIZE];
	char digest[IMAGE_DIGEST_SIZE];
	char source[IMAGE_REFERENCE_SIZE]; /* the reference it was pulled by, or "import" */
	int64_t bytes;
	uint64_t created_ms; /* set by the store */
};

/* New, or the name now means another digest; sandboxes keep the one they have. */
must_check int store_image_put(struct store *s, const struct image *image, struct image *ret,
			       struct err *e);

must_check int store_image_get(struct store *s, const char *name, struct image *ret,
			       struct err *e);
must_check int store_image_list(struct store *s,
				void (*on_image)(const struct image *image, void *arg), void *arg,
				struct err *e);

/* ERR_CONFLICT while a sandbox uses the name. `ret` is what it was. */
must_check int store_image_remove(struct store *s, const char *name, struct image *ret,
				  struct err *e);

/* No image name and no sandbox refers to this digest: the node may forget it. */
must_check int store_digest_is_unused(struct store *s, const char *digest, bool *ret,
				      struct err *e);

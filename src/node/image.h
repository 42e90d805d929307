/*
 * Images on this host: unpacked once, by digest, however many sandboxes use
 * them. Pulling and unpacking is done by berth-image, a confined program: this
 * one reads only the fixed records it sends back.
 */
#pragma once

#include "lib/err.h"
#include "node/link.h"
#include "proto/image.h"

struct node;

must_check int image_exists(const struct node *n, const char *digest, struct err *e);
must_check int image_open_rootfs(const struct node *n, const char *digest, int *ret, struct err *e);
must_check int image_read_config(const struct node *n, const char *digest,
				 struct image_config *ret, struct err *e);

/* Remove what an unpacking that was cut short left. */
must_check int image_clean(struct node *n, struct err *e);

void image_jobs_end(struct node *n); /* kill them, at the end of the program */

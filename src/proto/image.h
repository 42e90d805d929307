/*
 * What an image says about the commands in it, as berth-image leaves it for
 * berth-node: a record, so that no privileged process reads JSON from a stranger.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"
#include "proto/reader.h"

#define IMAGE_CONFIG_FILE "config"
#define IMAGE_CONFIG_MAX  (256UL << 10) /* bytes of a record */
#define IMAGE_ENV_MAX     1024
#define IMAGE_ARGS_MAX    1024
#define IMAGE_CWD_SIZE    4096
#define IMAGE_USER_SIZE   256
#define IMAGE_PATH        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct image_config {
	char cwd[IMAGE_CWD_SIZE];   /* absolute */
	char user[IMAGE_USER_SIZE]; /* in numbers, see proto/user-ids.h; empty: root */
	struct strv env;            /* "name=value" */
	struct strv entrypoint, cmd;
};

void image_config_done(struct image_config *c);
void image_config_encode(struct buf *out, const struct image_config *c);

/* `ret` must be zeroed. What is accepted can be used as it is. */
must_check int image_config_decode(struct bytes wire, struct image_config *ret, struct err *e);
must_check int image_config_check(const struct image_config *c, struct err *e);

/* What a root filesystem must look like before a runtime mounts over it. */
#pragma once

#include "lib/err.h"
#include "proto/image.h"

/*
 * In the root directory: /dev, /proc and /sys become plain directories,
 * whatever they were, and /.berth a fresh one with our two mount points in it.
 */
must_check int rootfs_finish(struct err *e);

/* In the root directory: the config's USER in numbers, and its HOME where the config says none. */
must_check int rootfs_user(struct image_config *c, struct err *e);

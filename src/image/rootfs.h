/* What a root filesystem must look like before a runtime mounts over it. */
#pragma once

#include "lib/err.h"

/*
 * In the root directory: /dev, /proc and /sys become plain directories,
 * whatever they were, and /.berth a fresh one with our two mount points in it.
 */
must_check int rootfs_finish(struct err *e);

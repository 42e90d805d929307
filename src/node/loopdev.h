/*
 * A loop device for a file: the one that already backs it, or a new one that
 * detaches itself when nothing uses it any more.
 */
#pragma once

#include "lib/err.h"

#define LOOPDEV_NAME_SIZE 32

/* `*held` keeps the device until it is mounted. Two devices on one file would corrupt it. */
must_check int loopdev_attach(const char *file, char name[LOOPDEV_NAME_SIZE], int *held,
			      struct err *e);

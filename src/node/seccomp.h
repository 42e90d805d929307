/*
 * The system calls a sandbox may make: an allowlist. What is not on it fails
 * with EPERM; clone3 fails with ENOSYS so that libc falls back to clone, whose
 * flags can be looked at.
 */
#pragma once

#include "lib/buf.h"

void seccomp_write(struct buf *out); /* the OCI "seccomp" object */

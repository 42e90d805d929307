/*
 * The system calls a sandbox may make: an allowlist. What is not on it fails
 * with EPERM; clone3 fails with ENOSYS so that libc falls back to clone, whose
 * flags can be looked at.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define SECCOMP_TEXT_MAX (64 * 1024)

void seccomp_write(struct buf *out); /* the OCI "seccomp" object */

/*
 * The same as the kernel's own code, in base64. crun takes it as an annotation:
 * compiling the list would otherwise be a third of every start.
 */
must_check int seccomp_compile(struct buf *out, struct err *e);

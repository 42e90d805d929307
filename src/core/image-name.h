/*
 * Names of images: ours (what a sandbox asks for) and a registry's (what is
 * pulled). Both end up in command lines, paths and SQL of others, so nothing
 * passes that could mean something there.
 */
#pragma once

#include "lib/err.h"

#define IMAGE_NAME_SIZE      256 /* with the NUL */
#define IMAGE_DIGEST_SIZE    80  /* sha256:... */
#define IMAGE_REFERENCE_SIZE 512

/* [a-z0-9][a-z0-9._/:-]*, no "..", no "//". */
must_check int image_name_check(const char *name, struct err *e);

/* host[:port]/path[:tag][@sha256:hex]; the host is a name, an IPv4 or [IPv6]. */
must_check int image_reference_check(const char *ref, struct err *e);

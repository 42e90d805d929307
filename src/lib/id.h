/* Random names: opaque, unguessable, safe in a path, a URL and a cgroup. */
#pragma once

#include "lib/base.h"

#define ID_RANDOM_CHARS 20 /* 100 bits */

/* Write `chars` random characters of 0-9 a-v and a NUL. */
void id_random(char *out, size_t chars);

/* A random number, never 0, that JSON can carry: below 2^53. */
uint64_t id_number(void);

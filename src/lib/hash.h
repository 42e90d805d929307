/* SHA-256, as hex. */
#pragma once

#include "lib/base.h"

#define HASH_HEX_SIZE 65

void hash_hex(const void *data, size_t len, char out[HASH_HEX_SIZE]);

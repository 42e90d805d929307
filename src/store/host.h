/* Hosts of this cell, as far as they have said they are there. */
#pragma once

#include "store/store.h"

must_check int store_host_put(struct store *s, const char *id, const char *version,
			      struct err *e);

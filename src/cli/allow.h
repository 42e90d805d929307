/* A network policy from words of a command line: HOST or HOST:PORT,PORT. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"

/* As JSON: those from the `first` on are allowed; if there is none, nothing is. */
must_check int allow_policy(struct buf *out, const struct strv *hosts, size_t first,
			    struct err *e);

/* A network policy from words of a command line: HOST or HOST:PORT,PORT. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"

/*
 * As JSON: the hosts from the `first` on are allowed; if there is none, nothing is. `mode` is
 * NULL, a mode without hosts ("open", "none"), or "allow", which needs some: the server knows
 * which there are.
 */
must_check int allow_policy(struct buf *out, const char *mode, const struct strv *hosts,
			    size_t first, struct err *e);

/* What a sandbox with that mode reaches, in words. */
const char *allow_text(const char *mode);

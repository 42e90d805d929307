/*
 * What a create said, before anything was filled in, against a sandbox that is
 * there already: every option that was said must be as the record has it. What
 * was not said never differs.
 *
 * Two options are not compared as they stand. A lifetime is counted from a
 * request that is long over: only whether there is an end at all is compared.
 * The host is where it was made, and it may have moved since: not at all.
 */
#pragma once

#include "core/network.h"
#include "core/sandbox.h"

struct sandbox_asked {
	struct sandbox_spec spec;     /* open is empty, LIMIT_OPEN or SANDBOX_OPEN */
	bool labels, env, keep_alive; /* said: their values cannot tell */
	const char *network;          /* JSON, checked; NULL: not said */
};

/* ERR_CONFLICT names the first differences. `network` is its policy; only for one that was said. */
must_check int sandbox_asked_check(const struct sandbox_asked *asked, const struct sandbox *sb,
				   const char *network, struct err *e);

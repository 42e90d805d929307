/*
 * The host's own addresses. A public name may lead to one of them, and behind the host's
 * firewall: so they are as inner as loopback is.
 */
#pragma once

#include "lib/base.h"

#define HOST_ADDRESSES_KEEP_MS 1000

struct host_addresses {
	uint32_t *addresses; /* host order */
	size_t count;
	bool known;
	uint64_t at_ms;
};

/* If they cannot be asked for, every address is taken for one. */
bool host_addresses_has(struct host_addresses *o, uint32_t address, uint64_t now_ms);
void host_addresses_done(struct host_addresses *o);

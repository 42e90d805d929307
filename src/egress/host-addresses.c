#include "egress/host-addresses.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdlib.h>

void host_addresses_done(struct host_addresses *o)
{
	free(o->addresses);
	*o = (struct host_addresses){ 0 };
}

static void ask(struct host_addresses *o, uint64_t now_ms)
{
	struct ifaddrs *all = NULL;

	host_addresses_done(o);
	o->at_ms = now_ms;
	o->known = getifaddrs(&all) == 0;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		const struct sockaddr_in *in = (const void *)i->ifa_addr;

		if (!in || in->sin_family != AF_INET)
			continue;
		o->addresses = xrealloc(o->addresses, (o->count + 1) * sizeof(*o->addresses));
		o->addresses[o->count++] = ntohl(in->sin_addr.s_addr);
	}
	if (all)
		freeifaddrs(all);
}

bool host_addresses_has(struct host_addresses *o, uint32_t address, uint64_t now_ms)
{
	if (!o->known || now_ms - o->at_ms >= HOST_ADDRESSES_KEEP_MS)
		ask(o, now_ms);
	for (size_t i = 0; i < o->count; i++)
		if (o->addresses[i] == address)
			return true;
	return !o->known;
}

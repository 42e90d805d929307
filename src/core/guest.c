#include "core/guest.h"

#include <stdio.h>

#define MINOR_SHIFT 16
#define MAJOR_MASK  0xffffU

static const char *const status_names[GUEST_STATUS_COUNT] = {
	[GUEST_UNKNOWN] = "unknown",
	[GUEST_CURRENT] = "current",
	[GUEST_DIFFERS] = "differs",
	[GUEST_INCOMPATIBLE] = "incompatible",
};

const char *guest_status_name(enum guest_status s)
{
	return status_names[s < GUEST_STATUS_COUNT ? s : GUEST_UNKNOWN];
}

enum guest_status guest_compare(uint32_t guest, uint32_t host)
{
	if (guest == 0 || host == 0)
		return GUEST_UNKNOWN;
	if (guest == host)
		return GUEST_CURRENT;
	return (guest & MAJOR_MASK) == (host & MAJOR_MASK) ? GUEST_DIFFERS : GUEST_INCOMPATIBLE;
}

const char *guest_version_text(uint32_t version, char out[GUEST_VERSION_SIZE])
{
	if (version == 0)
		snprintf(out, GUEST_VERSION_SIZE, "unknown");
	else
		snprintf(out, GUEST_VERSION_SIZE, "%u.%u", version & MAJOR_MASK,
			 version >> MINOR_SHIFT);
	return out;
}

bool guest_is_news(struct guest_versions recorded, struct guest_versions seen)
{
	return seen.guest != 0 && (recorded.guest != seen.guest || recorded.host != seen.host);
}

/*
 * The version of the protocol that the init of a sandbox speaks, beside the one its host does.
 *
 * An init lives as long as its sandbox is awake: an upgrade of the host leaves older ones behind.
 * A version is minor * 65536 + major; 0 is one that was never said.
 */
#pragma once

#include "lib/base.h"

#define GUEST_VERSION_SIZE 16

enum guest_status {
	GUEST_UNKNOWN,      /* it was not compared yet */
	GUEST_CURRENT,      /* the same version */
	GUEST_DIFFERS,      /* another minor: all work goes on, and the record's log says it once */
	GUEST_INCOMPATIBLE, /* another major: no new work; sleep and delete need nothing of it */
	GUEST_STATUS_COUNT
};
const char *guest_status_name(enum guest_status s);

enum guest_status guest_compare(uint32_t guest, uint32_t host);

/* "2.1", or "unknown". Returns `out`. */
const char *guest_version_text(uint32_t version, char out[GUEST_VERSION_SIZE]);

/* What the record says, and what a look saw: both as the pair that was compared. */
struct guest_versions {
	uint32_t guest, host;
};

/* Is it to be written? An observation without a version says nothing. */
bool guest_is_news(struct guest_versions recorded, struct guest_versions seen);

/* From a registry onto the disk: skopeo, as a user of no other use, into a directory of its own. */
#pragma once

#include "image/report.h"
#include "lib/err.h"

#define PULL_DIR    "oci" /* below the image's directory; berth-image removes it at its end */
#define PULL_LAYOUT PULL_DIR "/image"

struct pull {
	const char *reference;
	bool insecure; /* plain HTTP, or a certificate that cannot be verified */
	uint64_t max_bytes;
	struct report *report;
};

must_check int pull_run(const struct pull *p, int imagefd, struct err *e);

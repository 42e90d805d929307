/* The OCI bundle of one allocation: its config.json, from our limits and the image's own words. */
#pragma once

#include "lib/buf.h"
#include "lib/strv.h"

struct bundle {
	const char *name; /* of the allocation */
	const char *hostname;
	const char *rootfs;     /* absolute, in the engine's mount namespace */
	const char *cgroup;     /* "/berth.main/NAME" */
	const char *init;       /* berth-init on the host */
	const char *sys;        /* bound as /sys; NULL: the engine makes one */
	const char *userns;     /* a user namespace to join; NULL: the engine makes one */
	const char *socket_dir; /* bound as /.berth/sock for engines that need it, or NULL */
	const struct strv *env; /* the image's */
	const char *cwd;
	const char *const *args; /* of berth-init */
	bool init_mounts;        /* berth-init may mount, until it gives that up */
	const char *filter;      /* from seccomp_compile(); NULL: the engine compiles the list */
	uint32_t first_id;       /* of the sandbox's 65,536 */
	uint64_t memory_bytes;
	uint64_t socket_bytes; /* of TCP and UDP beside it; 0: they are part of it */
	uint32_t cpu_milli, pids, open_files;
};

void bundle_write(struct buf *out, const struct bundle *b);

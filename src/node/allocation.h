/*
 * An allocation: one physical incarnation of a sandbox on this host, and the
 * names of everything it may own here. All names derive from sandbox id and
 * generation, and the record is on disk before the first of them is made, so
 * a berth-node that was killed at any point finds them again.
 *
 *   RUN/alloc/NAME/record     this, encoded
 *   RUN/alloc/NAME/bundle/    config.json for the engine
 *   RUN/alloc/NAME/init.sock  where the host reaches init (crun)
 *   POOL/sandboxes/NAME       its subvolume; .berth/sock/init in it: the same (runsc)
 *   cgroup /berth.INSTANCE/NAME
 *   link s<slot> in the router, labelled NAME; its element of the set `live`
 */
#pragma once

#include <uv.h>

#include "node/runtime.h"
#include "proto/node.h"

#define ALLOCATION_NAME_SIZE 96
#define ALLOCATION_BUCKETS   8192

enum phase {
	PHASE_BUILDING, /* record written; a task makes the disk */
	PHASE_BUILT,
	PHASE_STARTING, /* the engine runs, or init has not answered yet */
	PHASE_RUNNING,
	PHASE_ENDED, /* its processes are gone; the disk is kept */
	PHASE_DESTROYING,
	PHASE_COUNT
};
const char *phase_name(enum phase p);

struct call;
struct node;

struct allocation {
	struct node *node;
	struct node_create spec; /* as it was asked for */
	char name[ALLOCATION_NAME_SIZE];
	const struct runtime *runtime;
	uint32_t life;     /* counts its starts: what was seen of one is not of the next */
	uint32_t slot;     /* which ids, which address, which link: see slot.h */
	uint32_t protocol; /* FRAME_VERSION of its init; 0: it has not answered yet */
	uint64_t made_ms;
	struct node_usage used; /* in cgroups that are gone; see node/meter.h */
	uint64_t used_group;    /* the last of them */
	enum phase phase;
	int dirfd; /* RUN/alloc/NAME */
	int netns; /* its slot's, until the engine has taken it; -1: to be made */

	struct call *call;    /* the verb being carried out */
	struct call *waiting; /* a destroy that came meanwhile, or a later generation's create */
	struct task *task;    /* what it is doing, to be killed by that destroy */
	bool listed;          /* a child looks at its processes */

	pid_t pid; /* of init (crun) or of the engine's sandbox (runsc); 0: none known */
	int pidfd;
	uv_poll_t *exit_poll; /* NULL: not watched */

	struct allocation *next; /* in its bucket */
};

struct allocations {
	struct allocation *buckets[ALLOCATION_BUCKETS];
	uint32_t count;
};

/* "sb_c1_x.3"; only [a-z0-9_] in an id, so the name is safe wherever it goes. */
must_check int allocation_name(const char *sandbox, uint64_t generation,
			       char out[ALLOCATION_NAME_SIZE], struct err *e);

/* The one of this sandbox, whatever its generation; NULL if there is none. */
struct allocation *allocation_find(const struct allocations *all, const char *sandbox);

/*
 * The one a verb means. ERR_NOT_FOUND if there is none, ERR_CONFLICT if it is
 * of another generation: a late verb must not touch a newer incarnation.
 */
must_check int allocation_target(const struct allocations *all, const struct node_target *t,
				 struct allocation **ret, struct err *e);

/*
 * A new one with a slot of its own (or on this one, if not NULL: what it left there is to be
 * found again), its directory and its record on disk.
 */
must_check int allocation_make(struct node *n, const struct node_create *spec,
			       const uint32_t *slot, struct allocation **ret, struct err *e);
must_check int allocation_save(struct allocation *a, struct err *e);

/* The one whose directory this is, after a restart. */
must_check int allocation_load(struct node *n, const char *name, struct allocation **ret,
			       struct err *e);

/* Remove the directory and forget it. Everything else must be gone. */
must_check int allocation_drop(struct allocation *a, struct err *e);
void allocation_free(struct allocation *a);

uint32_t allocation_first_id(const struct allocation *a);
const char *allocation_path(const struct allocation *a, const char *file, char *out, size_t size);

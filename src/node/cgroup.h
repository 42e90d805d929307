/*
 * The host's cgroups: which kind they are, and what one sandbox has there.
 *
 * Limits are first set by the OCI engine from config.json; node/meter.h changes
 * them and counts. This file only looks, kills and removes. Nothing outside our
 * own parent is ever touched.
 */
#pragma once

#include "lib/err.h"
#include "proto/node.h"

#define CGROUP_TREES_MAX   16
#define CGROUP_PARENT_SIZE 64

enum cgroup_mode {
	CGROUP_V1,
	CGROUP_HYBRID, /* v1 controllers, and a v2 tree beside them */
	CGROUP_V2,
	CGROUP_MODE_COUNT
};

struct cgroup_host {
	enum cgroup_mode mode;
	int trees[CGROUP_TREES_MAX]; /* a directory descriptor per hierarchy */
	char names[CGROUP_TREES_MAX][24];
	size_t tree_count;
	char parent[CGROUP_PARENT_SIZE]; /* "berth.main", below every root */
};

/*
 * Find the hierarchies. On a hybrid host crun refuses to work while any
 * controller is on the v2 tree, so those are put on v1 mounts of their own, in
 * this process's mount namespace, which must be private already.
 */
must_check int cgroup_open(struct cgroup_host *h, const char *instance, struct err *e);
void cgroup_close(struct cgroup_host *h); /* removes the parent where it is empty */

const char *cgroup_mode_name(enum cgroup_mode mode);

/* "/berth.main/NAME", for config.json */
must_check bool cgroup_path(const struct cgroup_host *h, const char *name, char *out, size_t size);

/*
 * For the child that becomes the engine: from here on everything it starts can
 * be found and killed under that name, also before the engine has made the
 * sandbox's own group.
 */
must_check int cgroup_enter_launch(const struct cgroup_host *h, const char *name, struct err *e);
void cgroup_end_launch(const struct cgroup_host *h, const char *name); /* if it is empty */

/* What is there under that name, and whether processes are in it. */
void cgroup_observe(const struct cgroup_host *h, const char *name, enum presence *group,
		    enum presence *process);

/*
 * Groups inside a sandbox's own (see node/group.h): on this hierarchy alone; -1: there is none.
 * What is said here of a sandbox's group is said of them, too.
 */
int cgroup_inner_tree(const struct cgroup_host *h);
must_check int cgroup_each_inner(const struct cgroup_host *h, const char *name,
				 void (*fn)(void *arg, const char *inner), void *arg);
enum presence cgroup_procs(const struct cgroup_host *h, const char *name); /* on it, in one */
void cgroup_kill_inner(const struct cgroup_host *h, const char *name);

/* True if that process is in the sandbox of that name. */
bool cgroup_holds(const struct cgroup_host *h, const char *name, int pid);

/* Send SIGKILL to every process in it. Repeat until cgroup_observe() says absent. */
void cgroup_kill(const struct cgroup_host *h, const char *name);

/* Remove the directories. Fails while processes are in them; absent is fine. */
must_check int cgroup_remove(const struct cgroup_host *h, const char *name, struct err *e);

/*
 * What sockets may hold beside a limit of memory: v1 counts TCP and UDP apart, and only under a
 * limit of their own. 0: they are part of the memory (v2), or this kernel does not count them.
 */
#define CGROUP_SOCKETS "memory.kmem.tcp.limit_in_bytes"
uint64_t cgroup_socket_bytes(const struct cgroup_host *h, uint64_t memory_bytes);

/* The directory of a v1 controller's hierarchy, or of "v2"; -1: it is not there. */
int cgroup_tree(const struct cgroup_host *h, const char *controller);

/* PARENT/NAME[/FILE], below a hierarchy's directory; NAME may be "". */
const char *cgroup_file(const struct cgroup_host *h, const char *name, const char *file, char *out,
			size_t size);

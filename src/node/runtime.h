/*
 * OCI engines behind one table: how a sandbox is run with each, and what it leaves.
 * A second engine is a second row; nothing else knows which one it is.
 */
#pragma once

#include "lib/strv.h"

struct runtime_paths {
	const char *root;   /* the engine's own state, ours alone */
	const char *bundle; /* directory of config.json */
	const char *pidfile;
	const char *log;
	const char *name;
	const char *platform; /* gVisor's */
};

struct runtime {
	const char *name;
	const char *const *init_args; /* of berth-init inside */

	/*
	 * crun hands the container descriptor 3, a socket the host listens on. runsc
	 * cannot: there init binds one itself, in a directory shared with the host.
	 */
	bool passes_socket;
	bool pid_is_init;  /* the pid it reports is berth-init's, so it can be asked to end */
	bool needs_sys;    /* cannot make a /sys of a network that is not the guest's own */
	bool joins_userns; /* takes one of ours; runsc has too many threads for that */
	bool seals_itself; /* starts faster from a sealed copy of its program */
	bool init_mounts;  /* berth-init hides gVisor's cgroups, and then may mount no more */
	bool shows_guest;  /* a guest's processes are the host's, and can be kept in cgroups */

	/*
	 * gVisor's own threads and its stubs for guest threads count as host pids:
	 * the cgroup's limit is base + each * what the sandbox may have.
	 */
	uint32_t pids_base, pids_each; /* see runtime_pids() */

	/*
	 * The files or directories below its root that mean it knows this sandbox.
	 * To delete one, we kill through the cgroup and remove these: the engine's
	 * own delete does no more, and takes gVisor's one to two seconds.
	 */
	void (*records)(struct strv *names, const char *name);

	void (*run)(struct strv *argv, const struct runtime_paths *p);

	/* What tells the processes of a guest; NULL: the host sees them. */
	void (*list)(struct strv *argv, const struct runtime_paths *p);
};

uint32_t runtime_pids(const struct runtime *r, uint32_t pids); /* of the cgroup */

const struct runtime *runtime_find(const char *name); /* or NULL */
const struct runtime *runtime_at(size_t i);           /* NULL past the last */

/* Its program, looked for on PATH: false if it is not there. */
bool runtime_program(const struct runtime *r, char *out, size_t size);

/* The engines whose program is on PATH, as "crun runsc". */
void runtime_installed(char *out, size_t size);

/*
 * OCI engines behind one table: how a sandbox is run and deleted with each.
 * A second engine is a second row; nothing else knows which one it is.
 */
#pragma once

#include "lib/strv.h"

struct runtime_paths {
	const char *root;    /* the engine's own state, ours alone */
	const char *bundle;  /* directory of config.json */
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
	bool pid_is_init; /* the pid it reports is berth-init's, so it can be asked to end */

	void (*run)(struct strv *argv, const struct runtime_paths *p);
	void (*delete)(struct strv *argv, const struct runtime_paths *p);
};

const struct runtime *runtime_find(const char *name); /* or NULL */

/* The engines whose program is on PATH, as "crun runsc". */
void runtime_installed(char *out, size_t size);

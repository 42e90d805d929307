/*
 * `berth init`: a system install as a list of steps. Each knows whether it is
 * done already, so the list can be gone through again at any time.
 */
#pragma once

#include "cli/command.h"
#include "cli/daemon.h"
#include "cli/engine.h"

#define INSTALL_STATE "/var/lib/berth"
#define INSTALL_CONF  "/etc/berth"
#define INSTALL_KEY   256

struct install_options {
	const char *image; /* reference to pull; NULL: made by debootstrap */
	const char *listen;
	const char *pool_size;
	bool no_image;
	bool dry_run;
};

struct install {
	const struct context *context;
	const struct install_options *options;
	struct account account;       /* `berth`, once it is there */
	char engine[ENGINE_WHY_SIZE]; /* which engine, and why, if the settings were written */
	char key[INSTALL_KEY];        /* the first key, if it was made just now */
};

struct install_step {
	const char *name; /* what it does, for the plan */
	bool (*done)(struct install *i);
	int (*act)(struct install *i, struct err *e);
};

extern const struct install_step install_steps[];
extern const size_t install_step_count;

/* Run a program to its end, its output on ours, as that account (NULL: as we are). */
must_check int install_run(const char *const *argv, const struct account *as, struct err *e);

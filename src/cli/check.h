/* One thing that `berth doctor` looks at, and what it found. */
#pragma once

#include "cli/command.h"

enum check_state {
	CHECK_FAIL, /* Berth does not work like this */
	CHECK_WARN, /* it works, but know this */
	CHECK_OK,
	CHECK_STATES
};

struct check {
	enum check_state state;
	char found[200]; /* what is there */
	char fix[200];   /* what to do; empty if nothing */
};

typedef void check_fn(const struct context *c, struct check *ret);

/* Set a check's result; `fix` may be NULL. */
void check_set(struct check *k, enum check_state state, const char *fix, const char *fmt, ...)
	printf_like(4, 5);

/* This machine: check-host.c */
check_fn check_kernel, check_cgroups, check_btrfs, check_userns, check_seccomp, check_cores,
	check_copies, check_files, check_disk, check_memory, check_devices;

/* Of net.core.tstamp_allow_data, which newer kernels have once per network namespace. */
void check_copies_of(uint64_t allowed, bool per_namespace, struct check *ret);

/* The programs we lean on: check-engines.c */
check_fn check_crun, check_runsc, check_nft, check_postgres, check_image_tools;

/* The server, if there is one: check-server.c */
check_fn check_server, check_key, check_pool, check_hosts;

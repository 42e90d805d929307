/*
 * A command of the CLI: one row, one file. main() finds the row, parses the
 * options by its table and calls run().
 */
#pragma once

#include "cli/options.h"
#include "lib/err.h"

/* What every command is given. */
struct context {
	const char *url;
	const char *key; /* "" if there is none */
	bool json;
	const struct command *const *commands; /* NULL-terminated */
};

struct command {
	const char *name;  /* "run", "image pull" */
	const char *usage; /* its arguments */
	const char *help;  /* one line */
	const struct option_row *options;
	size_t record_size;  /* of the struct the options fill */
	size_t min, max;     /* arguments */
	size_t own;          /* so many arguments are ours, the rest is a command; 0: all are */
	const char *details; /* more for `berth help NAME`, or NULL */

	/* The exit status, or -1 with the error: printed by main(), status 125. */
	int (*run)(const struct context *c, const void *options, const struct strv *args,
		   struct err *e);
};

#define COMMAND_ARGS_ANY SIZE_MAX

extern const struct command cmd_check;
extern const struct command cmd_code;
extern const struct command cmd_cp;
extern const struct command cmd_create;
extern const struct command cmd_dev;
extern const struct command cmd_doctor;
extern const struct command cmd_events;
extern const struct command cmd_exec;
extern const struct command cmd_execs;
extern const struct command cmd_help;
extern const struct command cmd_host_drain;
extern const struct command cmd_host_ls;
extern const struct command cmd_host_rm;
extern const struct command cmd_host_show;
extern const struct command cmd_host_undrain;
extern const struct command cmd_image_import;
extern const struct command cmd_image_ls;
extern const struct command cmd_image_pull;
extern const struct command cmd_image_rm;
extern const struct command cmd_init;
extern const struct command cmd_key_create;
extern const struct command cmd_key_ls;
extern const struct command cmd_key_rm;
extern const struct command cmd_kill;
extern const struct command cmd_limits;
extern const struct command cmd_logs;
extern const struct command cmd_policy_add;
extern const struct command cmd_policy_ls;
extern const struct command cmd_policy_rm;
extern const struct command cmd_network_show;
extern const struct command cmd_network_set;
extern const struct command cmd_network_lock;
extern const struct command cmd_network_events;
extern const struct command cmd_secret_set;
extern const struct command cmd_secret_ls;
extern const struct command cmd_secret_rm;
extern const struct command cmd_profile_add;
extern const struct command cmd_profile_ls;
extern const struct command cmd_profile_rm;
extern const struct command cmd_ps;
extern const struct command cmd_rm;
extern const struct command cmd_run;
extern const struct command cmd_shell;
extern const struct command cmd_show;
extern const struct command cmd_sleep;
extern const struct command cmd_usage;
extern const struct command cmd_version;
extern const struct command cmd_wake;

extern const struct option_row command_options[]; /* of struct context, for all commands */

/* berth: the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/exit-code.h"
#include "cli/help.h"
#include "cli/say.h"
#include "lib/str.h"

/* clang-format off */
/* In the order of the help. */
static const struct command *const commands[] = {
	&cmd_run,
	&cmd_create,
	&cmd_exec,
	&cmd_shell,
	&cmd_execs,
	&cmd_logs,
	&cmd_kill,
	&cmd_cp,
	&cmd_ps,
	&cmd_show,
	&cmd_rm,
	&cmd_sleep,
	&cmd_wake,
	&cmd_limits,
	&cmd_usage,
	&cmd_image_pull,
	&cmd_image_import,
	&cmd_image_ls,
	&cmd_image_rm,
	&cmd_key_create,
	&cmd_key_ls,
	&cmd_key_rm,
	&cmd_policy_add,
	&cmd_policy_ls,
	&cmd_policy_rm,
	&cmd_network_show,
	&cmd_network_set,
	&cmd_network_lock,
	&cmd_network_events,
	&cmd_secret_set,
	&cmd_secret_ls,
	&cmd_secret_rm,
	&cmd_profile_ls,
	&cmd_profile_add,
	&cmd_profile_rm,
	&cmd_host_ls,
	&cmd_host_show,
	&cmd_host_drain,
	&cmd_host_undrain,
	&cmd_host_rm,
	&cmd_events,
	&cmd_check,
	&cmd_code,
	&cmd_doctor,
	&cmd_dev,
	&cmd_init,
	&cmd_version,
	&cmd_help,
	NULL
};
/* clang-format on */

struct global_options {
	const char *url, *key;
	bool json, help;
};

/* clang-format off */
const struct option_row command_options[] = {
	OPTION(OPTION_TEXT, global_options, url, "url", 0, "URL", "the server (BERTH_URL)"),
	OPTION(OPTION_TEXT, global_options, key, "key", 0, "KEY", "the API key (BERTH_API_KEY)"),
	OPTION(OPTION_FLAG, global_options, json, "json", 0, NULL,
	       "print JSON, for programs; of run and exec the record, last on stderr"),
	OPTION(OPTION_FLAG, global_options, help, "help", 'h', NULL, "print this help"),
	OPTION_ROWS_END
};
/* clang-format on */

static const char *first_set(const char *a, const char *b, const char *c)
{
	return a && a[0] ? a : b && b[0] ? b
					 : c;
}

/* With or without the slash at its end, it is the same server. */
static int set_url(struct context *c, const char *given, char *url, struct err *e)
{
	size_t len = strlen(given);

	while (len > 0 && given[len - 1] == '/')
		len--;
	if (!str_copy_bytes(url, CLIENT_URL_MAX, given, len))
		return err_set(e, ERR_INVALID, "the URL is too long: %.60s", given);
	c->url = url;
	return 0;
}

/* The word of the usage for that argument, the first is 0; what may be left out is in brackets. */
static const char *argument_name(const char *usage, size_t at, size_t *len)
{
	for (;; usage += strcspn(usage, " ")) {
		usage += strspn(usage, " ");
		if (*usage && (*usage == '[' || at-- > 0))
			continue;
		*len = strcspn(usage, " .|");
		return usage;
	}
}

static int check_args(const struct command *cmd, const struct strv *args, struct err *e)
{
	const char *name;
	size_t len;

	if (args->len >= cmd->min && args->len <= cmd->max)
		return 0;
	name = argument_name(cmd->usage, args->len, &len);
	if (args->len < cmd->min)
		err_set(e, ERR_INVALID, "%s: %.*s is missing", cmd->name, (int)len, name);
	else
		err_set(e, ERR_INVALID, "%s: too many arguments", cmd->name);
	return err_fix(e, "Usage: berth %s %s", cmd->name, cmd->usage);
}

static int parse_and_run(const struct command *cmd, struct global_options *global, int argc,
			 char **argv, struct err *e)
{
	cleanup(strv_done) struct strv args = { 0 };
	cleanup(free_ptr) void *record = xcalloc(1, cmd->record_size ? cmd->record_size : 1);
	cleanup(options_done) struct option_set own = { cmd->options, record };
	struct option_set sets[] = { own, { command_options, global } };
	struct context c = { .commands = commands };
	struct option_line line = { argc, argv, cmd->own, cmd->name };
	char url[CLIENT_URL_MAX];
	const char *given;

	if (options_parse(&line, sets, array_len(sets), &args, e) < 0)
		return err_wrap(e, "%s", cmd->name);
	if (global->help)
		return help_command(cmd, e);
	if (check_args(cmd, &args, e) < 0)
		return -1;
	given = first_set(global->url, getenv("BERTH_URL"), CLIENT_DEFAULT_URL);
	if (set_url(&c, given, url, e) < 0)
		return -1;
	c.key = first_set(global->key, getenv("BERTH_API_KEY"), "");
	c.json = global->json;
	return cmd->run(&c, record, &args, e);
}

static int run_command(const struct command *cmd, struct global_options *global, int argc,
		       char **argv, struct err *e)
{
	int n = parse_and_run(cmd, global, argc, argv, e);

	if (n < 0 && e->code == ERR_INVALID && !e->fix[0])
		return err_fix(e, "See `berth help %s`.", cmd->name);
	return n;
}

static int berth(int argc, char **argv, struct global_options *global, struct err *e)
{
	struct option_set set = { command_options, global };
	cleanup(strv_done) struct strv args = { 0 };
	const struct command *cmd;
	size_t words;
	int first;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) /* what everybody tries */
		return run_command(&cmd_version, global, 1, argv, e);
	/* Options before the command's name: up to the first word that is none. */
	for (first = 1; first < argc && argv[first][0] == '-'; first++)
		if (strcmp(argv[first], "--url") == 0 || strcmp(argv[first], "--key") == 0)
			first++;
	first = first < argc ? first : argc;
	if (options_parse(&(struct option_line){ first, argv, 0, NULL }, &set, 1, &args, e) < 0)
		return err_fix(e, "See `berth help`.");
	if (first == argc || global->help)
		return help_all(commands, e);
	cmd = help_find(commands, (size_t)(argc - first), argv + first, &words);
	if (!cmd)
		return help_missing(commands,
				    first + 1 < argc && argv[first + 1][0] != '-' ? argv[first + 1]
										  : NULL,
				    argv[first], e);
	first += (int)words - 1; /* argv[0] of the command is its last word */
	return run_command(cmd, global, argc - first, argv + first, e);
}

int main(int argc, char **argv)
{
	struct global_options global = { 0 };
	struct err e = { 0 };
	int status = berth(argc, argv, &global, &e);

	if (status >= 0)
		return status;
	say_error(&e, global.json);
	return EXIT_BERTH;
}

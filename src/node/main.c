/* berth-node: options, settings, open, loop, close. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/config.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "node/daemon.h"

static int usage(FILE *to)
{
	fprintf(to, "Usage: berth-node [--config FILE]\n"
		    "The privileged side of a Berth host; see berth-node(8).\n");
	return to == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int fail(const struct err *e)
{
	log_event(LOG_ERROR, "berth-node cannot start", "why", e->msg, "do", err_remediation(e),
		  NULL);
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	const char *config = "/etc/berth/node.conf";
	struct node *n = node_new();
	struct err e = { 0 };
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'v')
			return printf("berth-node " BERTH_VERSION "\n") > 0 ? 0 : 1;
		if (opt != 'c')
			return usage(opt == 'h' ? stdout : stderr);
		config = optarg;
	}
	log_open("berth-node");
	proc_raise_files();
	if (config_load(config, node_settings_table, &n->settings, &e) < 0 ||
	    log_configure(n->settings.log_level, n->settings.log_format, &e) < 0 ||
	    node_open(n, &e) < 0)
		return fail(&e);
	log_event(LOG_INFO, "berth-node is ready", "instance", n->settings.instance, "cgroups",
		  cgroup_mode_name(n->cgroups.mode), "socket", n->settings.socket, NULL);
	uv_run(&n->loop, UV_RUN_DEFAULT);
	node_close(n);
	node_free(n);
	return EXIT_SUCCESS;
}

/* berth-egress: options, settings, open, loop, close. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "egress/egress.h"
#include "lib/log.h"
#include "lib/proc.h"

static int usage(FILE *to)
{
	fprintf(to, "Usage: berth-egress [--config FILE]\n"
		    "The way out of a Berth host's sandboxes; see berth-egress(8).\n");
	return to == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int fail(const struct err *e)
{
	log_event(LOG_ERROR, "berth-egress cannot start", "why", e->msg, "do", err_remediation(e),
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
	const char *config = "/etc/berth/egress.conf";
	struct egress *g = xcalloc(1, sizeof(*g));
	struct err e = { 0 };
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'v')
			return printf("berth-egress " BERTH_VERSION "\n") > 0 ? 0 : 1;
		if (opt != 'c')
			return usage(opt == 'h' ? stdout : stderr);
		config = optarg;
	}
	log_open("berth-egress");
	proc_raise_files();
	/* A guest that goes in the middle of its answer must not take the others with it. */
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	if (config_load(config, egress_settings_table, &g->settings, &e) < 0 ||
	    log_configure(g->settings.log_level, g->settings.log_format, &e) < 0 ||
	    egress_open(g, &e) < 0)
		return fail(&e);
	log_event(LOG_INFO, "berth-egress is ready", "socket", g->settings.socket, NULL);
	uv_run(&g->loop, UV_RUN_DEFAULT);
	egress_close(g);
	free(g);
	return EXIT_SUCCESS;
}

/* berthd: options, settings, open, loops, close. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/keys.h"
#include "berthd/main/daemon.h"
#include "lib/log.h"
#include "lib/proc.h"
#include "lib/str.h"

struct options {
	const char *config;
	const char *create_key; /* its name; then nothing is served */
	const char *role;
};

static int usage(FILE *to)
{
	fprintf(to, "Usage: berthd [--config FILE]\n"
		    "       berthd [--config FILE] --create-key NAME [--role user|admin]\n"
		    "The API of a Berth host; see berthd(8).\n");
	return to == stdout ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int fail(const struct err *e)
{
	log_event(LOG_ERROR, "berthd cannot start", "why", e->msg, "do", err_remediation(e), NULL);
	return EXIT_FAILURE;
}

/* For the first key: there is no key yet to ask the API with. */
static int create_key(const struct berthd *b, const struct options *o, struct err *e)
{
	cleanup(store_closep) struct store *s = NULL;
	char secret[KEY_SECRET_SIZE];
	struct key k = { .role = role_by_name(o->role) };

	if (k.role == ROLE_UNSET)
		return err_set(e, ERR_INVALID, "role must be user or admin");
	if (!str_copy(k.name, sizeof(k.name), o->create_key))
		return err_set(e, ERR_INVALID, "the name is longer than %zu bytes",
			       sizeof(k.name) - 1);
	memcpy(k.owner, k.name, sizeof(k.owner));
	if (store_open(b->settings.database, &s, e) < 0 || store_migrate(s, e) < 0 ||
	    key_make(s, &k, secret, e) < 0)
		return -1;
	printf("%s\n", secret);
	return 0;
}

/* 0 to go on, otherwise what main() returns plus one. */
static int read_options(int argc, char **argv, struct options *o)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "create-key", required_argument, NULL, 'k' },
		{ "role", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (opt == 'c')
			o->config = optarg;
		else if (opt == 'k')
			o->create_key = optarg;
		else if (opt == 'r')
			o->role = optarg;
		else if (opt == 'v')
			return printf("berthd " BERTH_VERSION "\n") > 0 ? EXIT_SUCCESS + 1 : 2;
		else
			return usage(opt == 'h' ? stdout : stderr) + 1;
	}
	return optind < argc ? usage(stderr) + 1 : 0;
}

int main(int argc, char **argv)
{
	struct options o = { .config = "/etc/berth/berthd.conf", .role = "user" };
	struct berthd *b = berthd_new();
	struct err e = { 0 };
	int r = read_options(argc, argv, &o);

	if (r != 0)
		return r - 1;
	log_open("berthd");
	proc_raise_files();
	if (config_load(o.config, berthd_settings_table, &b->settings, &e) < 0 ||
	    log_configure(b->settings.log_level, b->settings.log_format, &e) < 0)
		return fail(&e);
	if (o.create_key)
		return create_key(b, &o, &e) < 0 ? fail(&e) : EXIT_SUCCESS;
	if (berthd_open(b, &e) < 0 || berthd_start(b, &e) < 0)
		return fail(&e);
	log_event(LOG_INFO, "berthd is ready", "listen", b->settings.listen, "host",
		  b->settings.host, NULL);
	berthd_run(b);
	berthd_close(b);
	berthd_free(b);
	return EXIT_SUCCESS;
}

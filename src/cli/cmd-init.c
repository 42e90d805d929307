/* berth init: a server on this machine, kept by systemd. */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/install.h"
#include "cli/pool-size.h"
#include "cli/say.h"

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_TEXT, install_options, image, "image", 0, "REFERENCE",
	       "pull this as the image `base`, instead of making one with debootstrap"),
	OPTION(OPTION_FLAG, install_options, no_image, "no-image", 0, NULL, "make no image"),
	OPTION(OPTION_TEXT, install_options, listen, "listen", 'l', "ADDRESS",
	       "where the API listens (127.0.0.1:7070)"),
	OPTION(OPTION_TEXT, install_options, pool_size, "pool-size", 0, "SIZE",
	       "size of the disk pool when it is made (20g)"),
	OPTION(OPTION_FLAG, install_options, dry_run, "dry-run", 'n', NULL,
	       "print the plan and change nothing"),
	OPTION_ROWS_END
};
/* clang-format on */

static int print_plan(struct install *i, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(16UL * 1024);

	for (size_t n = 0; n < install_step_count; n++)
		buf_addf(&out, "%-6s %s\n", install_steps[n].done(i) ? "done" : "to do",
			 install_steps[n].name);
	return say_out(buf_str(&out), out.len, e);
}

static int install(struct install *i, struct err *e)
{
	for (size_t n = 0; n < install_step_count; n++) {
		const struct install_step *step = &install_steps[n];

		if (step->done(i))
			continue;
		say("%s", step->name);
		if (step->act(i, e) < 0)
			return err_wrap(e, "%s", step->name);
	}
	return 0;
}

static int check(const struct install_options *o, struct err *e)
{
	if (access("/run/systemd/system", F_OK) < 0 && !o->dry_run) {
		err_set(e, ERR_UNSUPPORTED, "this machine does not run systemd");
		return err_fix(e, "Use `sudo berth dev --dir DIR`: it needs nothing of the kind.");
	}
	if (geteuid() != 0 && !o->dry_run) {
		err_set(e, ERR_DENIED, "berth init needs root");
		return err_fix(e, "Run it with sudo; --dry-run shows what it would do.");
	}
	if (pool_size_check(INSTALL_STATE, o->pool_size, e) == 0)
		return 0;
	if (!o->dry_run || e->code != ERR_LIMIT)
		return -1;
	say("%s", e->msg); /* and the plan: nothing is made yet */
	return 0;
}

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	struct install_options o = *(const struct install_options *)given;
	struct context here = *c; /* the server we install, whatever BERTH_URL says */
	struct install i = { .context = &here, .options = &o };
	char text[INSTALL_KEY + ENGINE_WHY_SIZE + 256], url[CLIENT_URL_MAX];
	int n;

	(void)args;
	o.listen = o.listen ? o.listen : "127.0.0.1:7070";
	o.pool_size = o.pool_size ? o.pool_size : "20g";
	umask(022);
	if (check(&o, e) < 0)
		return -1;
	snprintf(url, sizeof(url), "http://%s", o.listen);
	here.url = url;
	if (o.dry_run)
		return print_plan(&i, e);
	if (install(&i, e) < 0)
		return -1;
	if (!i.key[0]) {
		say("everything is in place");
		return 0;
	}
	n = snprintf(text, sizeof(text),
		     "Berth is up at http://%s. Your key, shown only now:\n\n"
		     "  export BERTH_API_KEY=%s\n  berth run base -- echo hello\n%s%s",
		     o.listen, i.key, i.engine, i.engine[0] ? "\n" : "");
	return say_out(text, (size_t)n, e);
}

const struct command cmd_init = {
	.name = "init",
	.usage = "",
	.help = "Install a server on this machine, kept by systemd",
	.details = "Can be repeated: what is done already is left alone.",
	.options = options,
	.record_size = sizeof(struct install_options),
	.run = run,
};

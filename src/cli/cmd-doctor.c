/* berth doctor: what is as it should be, what is not, and what to do about it. */
#include <stdarg.h>
#include <stdio.h>

#include "cli/attack.h"
#include "cli/check.h"
#include "cli/say.h"
#include "lib/json.h"

#define TEXT_MAX (64UL * 1024)

/* clang-format off */
static const struct {
	const char *name;
	check_fn *look;
} checks[] = {
	{ "kernel",		check_kernel },
	{ "cgroups",		check_cgroups },
	{ "btrfs",		check_btrfs },
	{ "user namespaces",	check_userns },
	{ "seccomp",		check_seccomp },
	{ "core dumps",		check_cores },
	{ "transmit copies",	check_copies },
	{ "open files",		check_files },
	{ "devices",		check_devices },
	{ "memory",		check_memory },
	{ "disk",		check_disk },
	{ "crun",		check_crun },
	{ "runsc",		check_runsc },
	{ "nftables",		check_nft },
	{ "PostgreSQL",		check_postgres },
	{ "image tools",	check_image_tools },
	{ "server",		check_server },
	{ "API key",		check_key },
	{ "pool",		check_pool },
	{ "hosts",		check_hosts },
};

static const char *const states[CHECK_STATES] = {
	[CHECK_FAIL]	= "fail",
	[CHECK_WARN]	= "warn",
	[CHECK_OK]	= "ok",
};
/* clang-format on */

void check_set(struct check *k, enum check_state state, const char *fix, const char *fmt, ...)
{
	va_list args;

	k->state = state;
	snprintf(k->fix, sizeof(k->fix), "%s", fix ? fix : "");
	va_start(args, fmt);
	vsnprintf(k->found, sizeof(k->found), fmt, args);
	va_end(args);
}

static void add_json(struct buf *out, const char *name, const struct check *k)
{
	json_open(out, '{');
	json_str(out, "check", name);
	json_str(out, "state", states[k->state]);
	json_str(out, "found", k->found);
	json_str(out, "remediation", k->fix);
	buf_adds(out, "}");
}

struct doctor_options {
	bool attack;
	const char *runtime;
	struct strv only;
};

/* clang-format off */
static const struct option_row options[] = {
	OPTION(OPTION_FLAG, doctor_options, attack, "attack", 'a', NULL,
	       "attack this host from fresh sandboxes of its own"),
	OPTION(OPTION_TEXT, doctor_options, runtime, "runtime", 'r', "RUNTIME",
	       "with --attack: on this engine alone"),
	OPTION(OPTION_LIST, doctor_options, only, "only", 0, "PROBE", "with --attack: only this"),
	OPTION_ROWS_END
};
/* clang-format on */

static int run(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct doctor_options *o = given;
	cleanup(buf_done) struct buf out = buf_make(TEXT_MAX);
	unsigned counts[CHECK_STATES] = { 0 };

	(void)args;
	if (o->attack)
		return attack_report(c, o->runtime, &o->only, e);
	if (o->runtime || o->only.len)
		return err_set(e, ERR_INVALID, "--runtime and --only belong to --attack");
	if (c->json)
		buf_adds(&out, "{\"checks\":[");
	for (size_t i = 0; i < array_len(checks); i++) {
		struct check k = { .state = CHECK_FAIL };

		checks[i].look(c, &k);
		counts[k.state]++;
		if (c->json)
			add_json(&out, checks[i].name, &k);
		else
			buf_addf(&out, "%-5s %-16s %s\n", states[k.state], checks[i].name, k.found);
		if (!c->json && k.fix[0])
			buf_addf(&out, "%23s-> %s\n", "", k.fix);
	}
	if (c->json)
		buf_adds(&out, "]}\n");
	else
		buf_addf(&out, "\n%u fine, %u to know about, %u wrong.\n", counts[CHECK_OK],
			 counts[CHECK_WARN], counts[CHECK_FAIL]);
	if (say_out(buf_str(&out), out.len, e) < 0)
		return -1;
	return counts[CHECK_FAIL] ? 1 : 0;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.usage = "",
	.help = "Look whether this machine and the server are as they should be",
	.details = "The exit status is 1 if something is wrong. Needs neither root nor a server.\n"
		   "--attack needs a server on this very host and an admin key.\n"
		   "Its last line is \"N probes, N through\", and its status 1 if N is not 0.",
	.options = options,
	.record_size = sizeof(struct doctor_options),
	.run = run,
};

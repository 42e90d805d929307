#include <string.h>

#include "cli/attack.h"
#include "cli/check.h"
#include "cli/say.h"

#define REPORT_MAX (4UL << 20)

/* The engines of this host, by blanks. */
static int host_runtimes(const struct context *c, struct strv *ret, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	const char *at;

	if (client_call(c, "GET", "/v1/host", NULL, &reply, e) < 0)
		return -1;
	for (at = json_get_str(reply.tree, "runtimes"); *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		strv_addf(ret, "%.*s", (int)len, at);
		at += len;
	}
	return ret->len ? 0 : err_set(e, ERR_NOT_FOUND, "the host has no engine");
}

/* How old what holds the box is. */
static void say_ages(const struct context *c, struct buf *out)
{
	static const struct {
		const char *name;
		check_fn *look;
	} ages[] = {
		{ "kernel", check_kernel },
		{ "crun", check_crun },
		{ "runsc", check_runsc },
	};

	if (c->json) {
		json_key(out, "engines");
		json_open(out, '{');
	}
	for (size_t i = 0; i < array_len(ages); i++) {
		struct check k = { .state = CHECK_FAIL };

		ages[i].look(c, &k);
		if (c->json)
			json_str(out, ages[i].name, k.found);
		else
			buf_addf(out, "%-7s %s\n", ages[i].name, k.found);
	}
	buf_adds(out, c->json ? "}" : "");
}

static void say_run(const struct context *c, const char *runtime, const struct findings *f,
		    struct buf *out)
{
	if (!c->json) {
		buf_addf(out, "\n%s\n", runtime);
		findings_print(f, out);
		return;
	}
	json_open(out, '{');
	json_str(out, "runtime", runtime);
	json_int(out, "count", (int64_t)f->len);
	json_int(out, "through", (int64_t)findings_through(f));
	json_key(out, "probes");
	findings_json(f, out);
	buf_adds(out, "}");
}

static void say_end(const struct context *c, size_t count, size_t through, struct buf *out)
{
	if (!c->json) {
		buf_addf(out, "\n%s\n%zu probes, %zu through\n",
			 through ? "This host is not ready: what got through is above."
				 : "Nothing got through.",
			 count, through);
		return;
	}
	buf_adds(out, "]");
	json_int(out, "probes", (int64_t)count);
	json_int(out, "through", (int64_t)through);
	json_bool(out, "ready", through == 0);
	buf_adds(out, "}\n");
}

int attack_report(const struct context *c, const char *runtime, const struct strv *only,
		  struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(REPORT_MAX);
	cleanup(interrupt_close) struct interrupt stop = { .fd = -1 };
	cleanup(strv_done) struct strv runtimes = { 0 };
	size_t count = 0, through = 0;

	if (runtime)
		strv_add(&runtimes, runtime);
	else if (host_runtimes(c, &runtimes, e) < 0)
		return -1;
	if (interrupt_open(&stop, e) < 0)
		return -1;
	buf_adds(&out, c->json ? "{" : "");
	say_ages(c, &out);
	buf_adds(&out, c->json ? ",\"runs\":[" : "");
	for (size_t i = 0; i < runtimes.len; i++) {
		cleanup(findings_done) struct findings found = { 0 };

		if (attack_run(c, runtimes.items[i], only, &stop, &found, e) < 0)
			return -1;
		count += found.len;
		through += findings_through(&found);
		say_run(c, runtimes.items[i], &found, &out);
	}
	say_end(c, count, through, &out);
	if (say_out(buf_str(&out), out.len, e) < 0)
		return -1;
	return through ? 1 : 0;
}

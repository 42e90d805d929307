#include "node/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const init_with_socket[] = { "/.berth/init", "--fd", "3", NULL };
static const char *const init_that_binds[] = { "/.berth/init", "--listen", "/.berth/sock/init",
					       NULL };

static void crun_run(struct strv *argv, const struct runtime_paths *p)
{
	strv_add(argv, "crun");
	strv_addf(argv, "--root=%s", p->root);
	strv_addf(argv, "--log=file:%s", p->log);
	strv_add(argv, "run");
	strv_add(argv, "--detach");
	strv_add(argv, "--preserve-fds=1");
	strv_addf(argv, "--bundle=%s", p->bundle);
	strv_addf(argv, "--pid-file=%s", p->pidfile);
	strv_add(argv, p->name);
}

static void crun_records(struct strv *names, const char *name)
{
	strv_add(names, name);
}

static void runsc_records(struct strv *names, const char *name)
{
	strv_addf(names, "%s_sandbox:%s.state", name, name);
	strv_addf(names, "%s_sandbox:%s.lock", name, name);
}

static void runsc_run(struct strv *argv, const struct runtime_paths *p)
{
	strv_add(argv, "runsc");
	strv_addf(argv, "--root=%s", p->root);
	strv_addf(argv, "--platform=%s", p->platform);
	strv_add(argv, "--network=sandbox"); /* it takes over the link it finds */
	strv_add(argv, "--host-uds=all");    /* init binds the socket we connect to */
	strv_add(argv, "--overlay2=none");   /* writes go to the subvolume and its quota */
	strv_add(argv, "--cgroupfs");        /* init keeps one inside per command */
	strv_add(argv, "run");
	strv_add(argv, "--detach");
	strv_addf(argv, "--bundle=%s", p->bundle);
	strv_addf(argv, "--pid-file=%s", p->pidfile);
	strv_add(argv, p->name);
}

static void runsc_list(struct strv *argv, const struct runtime_paths *p)
{
	strv_add(argv, "runsc");
	strv_addf(argv, "--root=%s", p->root);
	strv_add(argv, "ps");
	strv_add(argv, "-format=table");
	strv_add(argv, p->name);
}

/* clang-format off */
static const struct runtime runtimes[] = {
	{ "crun",  init_with_socket, true,  true,  true,  true,  true,  false, true,  0,   1,
	  crun_records,  crun_run,  NULL },
	{ "runsc", init_that_binds,  false, false, false, false, false, true,  false, 512, 4,
	  runsc_records, runsc_run, runsc_list },
};
/* clang-format on */

uint32_t runtime_pids(const struct runtime *r, uint32_t pids)
{
	return r->pids_base + r->pids_each * pids;
}

const struct runtime *runtime_at(size_t i)
{
	return i < array_len(runtimes) ? &runtimes[i] : NULL;
}

const struct runtime *runtime_find(const char *name)
{
	for (size_t i = 0; i < array_len(runtimes); i++)
		if (strcmp(runtimes[i].name, name) == 0)
			return &runtimes[i];
	return NULL;
}

bool runtime_program(const struct runtime *r, char *out, size_t size)
{
	const char *path = getenv("PATH");
	char copy[4096], *save = NULL;

	snprintf(copy, sizeof(copy), "%s", path ? path : "/usr/sbin:/usr/bin");
	for (char *dir = strtok_r(copy, ":", &save); dir; dir = strtok_r(NULL, ":", &save)) {
		snprintf(out, size, "%s/%s", dir, r->name);
		if (access(out, X_OK) == 0)
			return true;
	}
	return false;
}

void runtime_installed(char *out, size_t size)
{
	char program[4096];
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < array_len(runtimes) && at < size; i++)
		if (runtime_program(&runtimes[i], program, sizeof(program)))
			at += (size_t)snprintf(out + at, size - at, "%s%s", at ? " " : "",
					       runtimes[i].name);
}

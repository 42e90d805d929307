#include "cli/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/str.h"

#ifndef BERTH_LIBEXECDIR
#define BERTH_LIBEXECDIR "/usr/local/libexec/berth"
#endif
#ifndef BERTH_BINDIR
#define BERTH_BINDIR "/usr/local/bin"
#endif

#define ANSWER_MS    5000

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* clang-format off */
/* The room of each program: its directory in the build tree. */
static const struct {
	const char *name, *room;
} rooms[] = {
	{ "berthd",		"berthd" },
	{ "berth-node",		"node" },
	{ "berth-egress",	"egress" },
	{ "berth-init",		"init" },
	{ "berth-image",	"image" },
	{ "berth-probe",	"probe" },
};
/* clang-format on */

static bool try(char out[PATH_MAX], const char *dir, const char *sub, const char *name)
{
	int n = snprintf(out, PATH_MAX, "%s%s/%s", dir, sub, name);

	return n > 0 && n < PATH_MAX && access(out, X_OK) == 0;
}

static int own_dir(char out[PATH_MAX], struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	if (n < 0)
		return err_sys(e, errno, "read /proc/self/exe");
	out[n] = '\0';
	*strrchr(out, '/') = '\0';
	return 0;
}

int program_find(const char *name, char out[PATH_MAX], struct err *e)
{
	const char *told = getenv("BERTH_LIBEXEC");
	char here[PATH_MAX], found[PATH_MAX], beside[32] = "";

	if (own_dir(here, e) < 0)
		return -1;
	for (size_t i = 0; i < array_len(rooms); i++)
		if (strcmp(rooms[i].name, name) == 0)
			snprintf(beside, sizeof(beside), "/../%s", rooms[i].room);
	if ((told && try(found, told, "", name)) ||
	    (strcmp(here, BERTH_BINDIR) == 0 && try(found, BERTH_LIBEXECDIR, "", name)) ||
	    (beside[0] && try(found, here, beside, name)) || try(found, here, "", name) ||
	    try(found, BERTH_LIBEXECDIR, "", name)) {
		if (realpath(found, out))
			return 0;
		return err_sys(e, errno, "%s", found);
	}
	err_set(e, ERR_NOT_FOUND, "there is no %s beside %s or in " BERTH_LIBEXECDIR, name, here);
	return err_fix(e, "Install or build all of Berth, or set BERTH_LIBEXEC to its directory.");
}

bool program_on_path(const char *name, char out[PATH_MAX])
{
	const char *path = getenv("PATH");

	for (const char *p = path && path[0] ? path : DEFAULT_PATH; p;) {
		const char *colon = strchr(p, ':');
		char dir[PATH_MAX];

		if (str_copy_bytes(dir, sizeof(dir), p, colon ? (size_t)(colon - p) : strlen(p)) &&
		    dir[0] == '/' && try(out, dir, "", name))
			return true;
		p = colon ? colon + 1 : NULL;
	}
	return try(out, "/usr/sbin", "", name) || try(out, "/sbin", "", name);
}

int program_find_postgres(const char *name, char out[PATH_MAX], struct err *e)
{
	cleanup(globfree) glob_t found = { 0 };
	uint64_t best = 0;

	if (program_on_path(name, out))
		return 0;
	(void)glob("/usr/lib/postgresql/*/bin", 0, NULL, &found); /* none is none */
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char candidate[PATH_MAX], version[16];
		const char *from = found.gl_pathv[i] + strlen("/usr/lib/postgresql/");
		struct err ignored;
		uint64_t n;

		if (!str_copy_bytes(version, sizeof(version), from, strcspn(from, "/")) ||
		    str_u64(version, &n, &ignored) < 0 || n <= best ||
		    !try(candidate, found.gl_pathv[i], "", name))
			continue;
		best = n;
		(void)!str_copy(out, PATH_MAX, candidate); /* the same size: fits */
	}
	if (best)
		return 0;
	err_set(e, ERR_NOT_FOUND, "PostgreSQL's %s is not here", name);
	return err_fix(e, "Install PostgreSQL 15 or newer: apt install postgresql");
}

bool program_first_line(const char *const *argv, char *out, size_t size)
{
	cleanup(close_fd) int in = -1, to = -1;
	struct proc_spec spec = { .argv = argv, .in = -1, .err = -1 };
	struct pollfd p = { .events = POLLIN };
	struct proc proc;
	struct err ignored;
	int ends[2];
	ssize_t n;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	in = ends[0];
	to = ends[1];
	spec.out = to;
	if (proc_start(&spec, &proc, &ignored) < 0)
		return false;
	close_fd(&to);
	to = -1;
	p.fd = in;
	n = poll(&p, 1, ANSWER_MS) > 0 ? read(in, out, size - 1) : -1;
	proc_kill(&proc, SIGKILL); /* one line was all we wanted */
	(void)proc_wait(&proc);
	if (n <= 0)
		return false;
	out[n] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return true;
}

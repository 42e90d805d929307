/*
 * berth-probe list             every probe: name, what it stands for, what it tries
 * berth-probe run NAME=VALUE.. all but the bombs, or those of only=a,b; one line each, see print()
 * berth-probe neighbour ...    be a neighbour to be found, until killed
 * berth-probe swap PATH        exchange PATH and PATH.other, as fast as it goes
 * berth-probe hold NAME        take all there is of something; see shared.c
 * berth-probe one NAME         and one of it
 * berth-probe release PID      end the one that holds it
 * berth-probe where            is the working directory below our root?
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/helper.h"
#include "probe/probe.h"

#define TRY_SECONDS  20
#define BOMB_SECONDS 50 /* one at a time, and an emulated machine is slow; its exec has 60 */
#define PROBES_MAX   400

/* What a try's process ends with. */
enum {
	HELD,
	THROUGH,
	OWN,
	UNKNOWN
};

static const char *const verdicts[] = {
	[HELD] = "held",
	[THROUGH] = "through",
	[OWN] = "own",
	[UNKNOWN] = "unknown",
};

static const struct probe *const rooms[] = {
	probe_calls,
	probe_requests,
	probe_families,
	probe_mounts,
	probe_kernel,
	probe_paths,
	probe_init,
	probe_ids,
	probe_others,
	probe_net,
	probe_bombs,
	probe_shared,
};

long probe_say(struct attempt *a, long verdict, const char *fmt, ...)
{
	int kept = errno;
	va_list args;

	va_start(args, fmt);
	vsnprintf(a->note, sizeof(a->note), fmt, args);
	va_end(args);
	errno = kept;
	return verdict;
}

long probe_refused(int why)
{
	errno = why;
	return -1;
}

/* clang-format off */
static const struct {
	const char *name;
	size_t offset, size; /* of a text; a number without a size */
} words[] = {
	{ "token",	offsetof(struct target, token),		PROBE_TEXT_SIZE },
	{ "file",	offsetof(struct target, file),		PROBE_TEXT_SIZE },
	{ "release",	offsetof(struct target, release),	PROBE_TEXT_SIZE },
	{ "ids",	offsetof(struct target, ids),		PROBE_TEXT_SIZE },
	{ "name",	offsetof(struct target, name),		PROBE_TEXT_SIZE },
	{ "pid",	offsetof(struct target, pid),		0 },
	{ "port",	offsetof(struct target, port),		0 },
	{ "api",	offsetof(struct target, api),		0 },
	{ "key",	offsetof(struct target, key),		0 },
	{ "memory",	offsetof(struct target, memory),	0 },
	{ "disk",	offsetof(struct target, disk),		0 },
	{ "pids",	offsetof(struct target, pids),		0 },
	{ "files",	offsetof(struct target, files),		0 },
	{ "cpu",	offsetof(struct target, cpu),		0 },
};
/* clang-format on */

static bool take_word(struct target *t, const char *word, size_t *addresses)
{
	const char *value = strchr(word, '=');
	size_t len = value ? (size_t)(value - word) : 0;

	if (!value)
		return false;
	value++;
	if (strcmp(word, "engine=runsc") == 0)
		t->gvisor = true;
	if (strncmp(word, "engine=", 7) == 0)
		return true;
	if (strncmp(word, "address=", 8) == 0 && *addresses < PROBE_ADDRESSES) {
		snprintf(t->addresses[(*addresses)++], PROBE_TEXT_SIZE, "%s", value);
		return true;
	}
	for (size_t i = 0; i < array_len(words); i++) {
		char *at = (char *)t + words[i].offset;

		if (strlen(words[i].name) != len || strncmp(words[i].name, word, len) != 0)
			continue;
		if (words[i].size)
			snprintf(at, words[i].size, "%s", value);
		else
			*(int *)(void *)at = (int)strtol(value, NULL, 10);
		return true;
	}
	return false;
}

static bool reached(const struct probe *p, long result, int why, const struct target *t)
{
	if (result >= 0)
		return true;
	return p->judge == JUDGE_STRICT && !t->gvisor && why != EPERM && why != EACCES &&
	       why != ENOSYS;
}

static no_return void try(const struct probe *p, const struct target *t, int out)
{
	struct attempt a = { .target = t, .probe = p };
	long r;
	int verdict = HELD;

	signal(SIGPIPE, SIG_IGN);
	alarm(p->bomb ? BOMB_SECONDS : TRY_SECONDS);
	errno = 0;
	r = p->run ? p->run(&a)
		   : syscall(p->call, p->args[0], p->args[1], p->args[2], p->args[3], p->args[4],
			     p->args[5]);
	if (r == PROBE_UNKNOWN)
		verdict = UNKNOWN;
	else if (reached(p, r, errno, t))
		verdict = t->gvisor && p->gvisor ? OWN : THROUGH;
	if (!a.note[0])
		snprintf(a.note, sizeof(a.note), "%s", r >= 0 ? "it worked" : strerror(errno));
	(void)!write(out, a.note, strlen(a.note));
	if (verdict == OWN) {
		(void)!write(out, "; ", 2);
		(void)!write(out, p->gvisor, strlen(p->gvisor));
	}
	_exit(verdict);
}

/* A try under way. */
struct running {
	const struct probe *probe;
	pid_t pid;
	int from;
};

static bool start(struct running *r, const struct probe *p, const struct target *t)
{
	int ends[2];

	*r = (struct running){ .probe = p, .pid = -1, .from = -1 };
	fflush(stdout);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	r->from = ends[0];
	r->pid = fork();
	if (r->pid == 0) {
		close(ends[0]);
		try(p, t, ends[1]);
	}
	close(ends[1]);
	return r->pid > 0;
}

static void print(const struct probe *p, const char *verdict, const char *note)
{
	printf("%s\t%s\t%s", p->name, p->stands_for, p->tries);
	if (verdict)
		printf("\t%s\t%s", verdict, note);
	printf("\n");
}

static void finish(struct running *r)
{
	char note[PROBE_NOTE_SIZE] = "";
	int status = 0;
	size_t len = 0;
	ssize_t n;

	while (len < sizeof(note) - 1 &&
	       (n = read(r->from, note + len, sizeof(note) - 1 - len)) > 0)
		len += (size_t)n;
	close(r->from);
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	for (char *c = note; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	if (WIFEXITED(status) && WEXITSTATUS(status) <= UNKNOWN)
		print(r->probe, verdicts[WEXITSTATUS(status)], note);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		print(r->probe, "unknown", "it did not end");
	else if (WIFSIGNALED(status))
		print(r->probe, "held",
		      WTERMSIG(status) == SIGSYS ? "killed by the filter" : "killed");
	else
		print(r->probe, "unknown", "it ended oddly");
}

static bool is_named(const char *list, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = list; p && (p = strstr(p, name)); p += len)
		if ((p == list || p[-1] == ',') && (p[len] == ',' || !p[len]))
			return true;
	return false;
}

/* The quick and the bombs one by one; those that wait all at once. */
static void run_all(const struct target *t, const char *only)
{
	static struct running waiting[PROBES_MAX];
	size_t count = 0;

	for (size_t i = 0; i < array_len(rooms); i++)
		for (const struct probe *p = rooms[i]; p->name; p++) {
			struct running one;

			if (p->take || (only ? !is_named(only, p->name) : p->bomb))
				continue;
			if (p->gvisor_only && !t->gvisor)
				continue;
			if (p->slow && count < PROBES_MAX) {
				if (start(&waiting[count], p, t))
					count++;
				else
					print(p, "unknown", "no process for it");
			} else if (start(&one, p, t)) {
				finish(&one);
			} else {
				print(p, "unknown", "no process for it");
			}
		}
	for (size_t i = 0; i < count; i++)
		finish(&waiting[i]);
}

static int run(int argc, char **argv)
{
	struct target t = { 0 };
	const char *only = NULL;
	size_t addresses = 0;

	for (int fd = 3; fd < 1024 && !t.leaked; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			t.leaked = fd;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "only=", 5) == 0)
			only = argv[i] + 5;
		else if (!take_word(&t, argv[i], &addresses))
			return 2;
	}
	run_all(&t, only);
	return 0;
}

/* How the other side is to treat it. */
static const char *kind(const struct probe *p)
{
	if (p->take)
		return "shared";
	if (p->bomb)
		return "bomb";
	return p->gvisor_only ? "runsc" : "";
}

static int list(void)
{
	for (size_t i = 0; i < array_len(rooms); i++)
		for (const struct probe *p = rooms[i]; p->name; p++)
			printf("%s\t%s\t%s\t%s\n", p->name, p->stands_for, p->tries,
			       kind(p));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (argc >= 2 && strcmp(argv[1], "run") == 0)
		return run(argc - 2, argv + 2);
	return helper(argc - 1, argv + 1);
}

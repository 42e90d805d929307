#include "node/process-list.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/proc.h"
#include "lib/str.h"
#include "node/group.h"

#define PATH_SIZE   256
#define STATUS_SIZE (1024UL * 1024) /* with the 65,536 groups that a process may be in */
#define PROCS_MAX   (1024UL * 1024) /* as in node/cgroup.c */
#define TABLE_MAX   (1024UL * 1024)
#define KIB         1024

/* What follows "\nPPid:\t", up to the end of its line. */
static bool line_of(const char *text, const char *label, char *out, size_t size)
{
	const char *at = strstr(text, label);

	if (!at)
		return false;
	at += strlen(label);
	at += strspn(at, "\t ");
	return str_copy_bytes(out, size, at, strcspn(at, "\n"));
}

static bool number_of(const char *text, uint32_t *ret)
{
	char digits[16];
	struct err ignored;
	uint64_t n;

	if (!str_copy_bytes(digits, sizeof(digits), text, strspn(text, "0123456789")) ||
	    str_u64(digits, &n, &ignored) < 0 || n > UINT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

bool process_status_read(const char *text, struct node_process *ret, uint32_t *host_parent)
{
	struct node_process p = { 0 };
	char line[128], name[64];
	uint32_t parent, kib;

	if (!str_starts(text, "Name:\t") ||
	    !str_copy_bytes(name, sizeof(name), text + 6, strcspn(text + 6, "\n")) ||
	    !line_of(text, "\nPPid:", line, sizeof(line)) || !number_of(line, &parent) ||
	    !group_pid_read(text, &p.pid))
		return false;
	if (line_of(text, "\nState:", line, sizeof(line)))
		p.state = (unsigned char)line[0];
	if (line_of(text, "\nVmRSS:", line, sizeof(line)) && number_of(line, &kib))
		p.memory_bytes = (uint64_t)kib * KIB;
	snprintf(p.command, sizeof(p.command), "[%s]", name);
	*ret = p;
	*host_parent = parent;
	return true;
}

/* The next word of a row; `line` goes on behind it. */
static const char *next_word(const char **line)
{
	const char *word = *line;

	*line += strcspn(*line, " ");
	*line += strspn(*line, " ");
	return word;
}

bool process_row_read(const char *line, struct node_process *ret)
{
	enum {
		BETWEEN = 4
	}; /* UID PID PPID, then C TTY STIME TIME, then CMD */
	struct node_process p = { 0 };
	uint32_t user;

	if (!number_of(next_word(&line), &user) || !number_of(next_word(&line), &p.pid) ||
	    !number_of(next_word(&line), &p.parent))
		return false;
	for (int i = 0; i < BETWEEN; i++)
		(void)next_word(&line);
	if (!*line || p.pid == 0)
		return false;
	snprintf(p.command, sizeof(p.command), "[%.*s]", NODE_COMMAND_SIZE - 3, line);
	*ret = p;
	return true;
}

void process_words(const char *data, size_t len, char out[NODE_COMMAND_SIZE])
{
	char words[NODE_COMMAND_SIZE];

	if (len > sizeof(words) - 1)
		len = sizeof(words) - 1;
	while (len > 0 && data[len - 1] == '\0')
		len--;
	if (len == 0)
		return;
	memcpy(words, data, len);
	words[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if (words[i] == '\0')
			words[i] = ' ';
	memcpy(out, words, len + 1);
}

/* ---- an engine that shows its guests: what is in the cgroup ---- */

struct seen {
	int dir; /* /proc/PID: of this process, and never of a later one of its number */
	uint32_t pid, parent;
};

/* False: it ended, its number is by now that of a process elsewhere, or it cannot be read. */
static bool look_at(const struct process_place *at, const char *group, const char *word,
		    struct seen *s, struct node_process *ret)
{
	cleanup(buf_done) struct buf status = buf_make(STATUS_SIZE);
	cleanup(close_fd) int dir = -1;
	char path[64];
	struct err ended;

	snprintf(path, sizeof(path), "/proc/%.20s", word);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || !number_of(word, &s->pid) || !cgroup_holds(at->host, group, (int)s->pid) ||
	    file_read(dir, "status", &status, &ended) < 0 ||
	    !process_status_read(buf_str(&status), ret, &s->parent))
		return false;
	s->dir = take_fd(dir);
	return true;
}

static bool has_ended(const struct process_place *at, const char *group, const char *word)
{
	uint32_t pid;

	return !number_of(word, &pid) || !cgroup_holds(at->host, group, (int)pid);
}

static void read_words(const struct seen *s, struct node_process *p)
{
	cleanup(close_fd) int fd = openat(s->dir, "cmdline", O_RDONLY | O_CLOEXEC);
	char data[NODE_COMMAND_SIZE];
	ssize_t n = fd < 0 ? -1 : read(fd, data, sizeof(data));

	if (n > 0)
		process_words(data, (size_t)n, p->command);
}

/* The parent as the guest counts; 0: it is not of this group. */
static void find_parents(const struct seen *seen, struct process_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		for (uint32_t k = 0; k < list->count; k++)
			if (seen[k].pid == seen[i].parent)
				list->items[i].parent = list->items[k].pid;
}

static int read_group(const struct process_place *at, struct process_list *ret, struct err *e)
{
	cleanup(buf_done) struct buf procs = buf_make(PROCS_MAX);
	char group[PATH_SIZE], path[PATH_SIZE], *save = NULL;
	struct seen seen[NODE_PROCESSES_MAX] = { 0 };

	snprintf(group, sizeof(group), "%s/%s", at->sandbox, at->group);
	cgroup_file(at->host, group, "cgroup.procs", path, sizeof(path));
	if (file_read(cgroup_inner_tree(at->host), path, &procs, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1; /* it has ended, or never was */
	for (char *word = procs.len ? strtok_r(procs.data, "\n", &save) : NULL; word;
	     word = strtok_r(NULL, "\n", &save)) {
		ret->total++;
		if (ret->count < NODE_PROCESSES_MAX &&
		    look_at(at, group, word, &seen[ret->count], &ret->items[ret->count]))
			ret->count++;
		else if (ret->count < NODE_PROCESSES_MAX && has_ended(at, group, word))
			ret->total--; /* else it is there and not told: the list is not whole */
	}
	find_parents(seen, ret);
	for (uint32_t i = 0; i < ret->count; i++)
		read_words(&seen[i], &ret->items[i]);
	return 0;
}

/* ---- one that does not: it is asked ---- */

/* Its socket has a name in the network namespace of the sandbox; it ends with the one that asks. */
static int enter_network(void *arg)
{
	const int *netns = arg;

	return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 ? -1 : setns(*netns, CLONE_NEWNET);
}

static int run_engine(const struct process_place *at, int out, struct err *e)
{
	cleanup(strv_done) struct strv argv = { 0 };
	cleanup(close_fd) int netns = -1;
	struct proc_spec spec = { .in = -1, .out = out, .err = -1, .prepare = enter_network };
	struct proc child;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)at->pid);
	netns = open(path, O_RDONLY | O_CLOEXEC);
	if (netns < 0)
		return err_sys(e, errno, "the network of %s", at->sandbox);
	at->engine->list(&argv, &at->paths);
	spec.argv = (const char *const *)argv.items;
	spec.arg = &netns;
	if (proc_start(&spec, &child, e) < 0)
		return -1;
	return proc_wait(&child) == 0 ? 0
				      : err_set(e, ERR_INTERNAL, "%s does not tell the processes "
								 "of %s",
						at->engine->name, at->sandbox);
}

static int read_engine(const struct process_place *at, struct process_list *ret, struct err *e)
{
	cleanup(buf_done) struct buf table = buf_make(TABLE_MAX);
	cleanup(close_fd) int fd = memfd_create("processes", MFD_CLOEXEC);
	char path[64], *save = NULL;

	if (fd < 0)
		return err_sys(e, errno, "memfd");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (run_engine(at, fd, e) < 0 || file_read(AT_FDCWD, path, &table, e) < 0)
		return -1;
	for (char *line = table.len ? strtok_r(table.data, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct node_process p;

		if (!process_row_read(line, &p))
			continue; /* the head of the table */
		ret->total++;
		if (ret->count < NODE_PROCESSES_MAX)
			ret->items[ret->count++] = p;
	}
	return 0;
}

int process_list_read(const struct process_place *at, struct process_list *ret, struct err *e)
{
	return at->engine->list ? read_engine(at, ret, e) : read_group(at, ret, e);
}

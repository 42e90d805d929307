#include "init/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/strv.h"

#define TREE_PIDS_MAX    65536UL
#define TREE_ROUNDS_MAX  32
#define TREE_PLAIN_KILLS 20

/* musl's own headers may lack these; the numbers are the kernel's, on every architecture. */
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Instead of a pidfd. */
enum pin {
	PIN_GONE = -1,
	PIN_NONE = -2, /* none could be had: what was seen is believed */
};

struct pids {
	pid_t *items;
	size_t len;
};

/* A process: its number alone may be another's by now. */
struct spared {
	pid_t pid;
	uint64_t started;
};

struct tree_spared {
	size_t len;
	struct spared items[];
};

struct tree_kind {
	int (*open)(struct tree *t);
	int (*add)(const struct tree *t, pid_t pid);      /* NULL: they are found without */
	size_t (*send)(const struct tree *t, int signum); /* how many were seen */
	void (*adopt)(struct tree *t, pid_t pid);
	bool marked; /* members carry t->name in their environment */
};

static void pids_done(struct pids *p)
{
	free(p->items);
}

static void pids_add(struct pids *p, pid_t pid)
{
	if (p->len == TREE_PIDS_MAX)
		return;
	if ((p->len & (p->len - 1)) == 0)
		p->items = xrealloc(p->items, (p->len ? 2 * p->len : 1) * sizeof(*p->items));
	p->items[p->len++] = pid;
}

static void dir_closep(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* A directory stream of its own: `fd` stays open and its offset untouched. */
static DIR *dir_stream(int fd)
{
	int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = again < 0 ? NULL : fdopendir(again);

	if (!d)
		close_fd(&again);
	return d;
}

/* The number at the start of s; 0 if there is none. */
static pid_t pid_of(const char *s)
{
	pid_t pid = 0;

	for (; *s >= '0' && *s <= '9' && pid < (1 << 26); s++)
		pid = pid * 10 + (*s - '0');
	return pid;
}

static ssize_t read_at(int dir, const char *name, char *to, size_t size)
{
	cleanup(close_fd) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, to, size - 1);

	if (n >= 0)
		to[n] = '\0';
	return n;
}

static int open_proc(struct tree *t)
{
	t->dir = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->dir < 0 ? -1 : 0;
}

/* --- subreaper --- */

static int subreaper_open(struct tree *t)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -1;
	return open_proc(t);
}

/* A command's name may hold anything, so what follows it starts at the last ')'. */
static const char *stat_of(int proc, const char *pid, char stat[512])
{
	char path[64];
	const char *after;

	snprintf(path, sizeof(path), "%.20s/stat", pid);
	if (read_at(proc, path, stat, 512) < 0)
		return NULL;
	after = strrchr(stat, ')');
	return after && strlen(after) > 4 ? after + 4 : NULL;
}

static pid_t parent_of(int proc, const char *pid)
{
	char stat[512];
	const char *parent = stat_of(proc, pid, stat);

	return parent ? pid_of(parent) : 0;
}

/* That field of its stat as a number; the parent is field 4. 0: there is none. */
static uint64_t field_of(int proc, pid_t pid, int field)
{
	char name[16], stat[512];
	const char *at;
	uint64_t n = 0;

	snprintf(name, sizeof(name), "%d", pid);
	at = stat_of(proc, name, stat);
	for (int i = 4; at && i < field; i++) {
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	for (; at && *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	return n;
}

static uint64_t start_of(int proc, pid_t pid)
{
	return field_of(proc, pid, 22); /* in ticks since boot */
}

static bool is_spared(const struct tree *t, pid_t pid)
{
	for (size_t i = 0; t->spared && i < t->spared->len; i++)
		if (t->spared->items[i].pid == pid)
			return t->spared->items[i].started == start_of(t->dir, pid);
	return false;
}

static bool pids_has(const struct pids *p, pid_t pid)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->items[i] == pid)
			return true;
	return false;
}

/* Move the children of those already found over, until a round finds none. */
static void descend(struct pids *all, struct pids *parents, struct pids *found)
{
	size_t before;

	pids_add(found, getpid());
	do {
		before = found->len;
		for (size_t i = 0; i < all->len; i++) {
			if (all->items[i] == 0 || !pids_has(found, parents->items[i]))
				continue;
			pids_add(found, all->items[i]);
			all->items[i] = 0;
		}
	} while (found->len > before);
	/*
	 * Without ourselves, and parents before children: a shell whose child dies
	 * first would go on to its next line before the signal reaches it.
	 */
	memmove(found->items, found->items + 1, --found->len * sizeof(*found->items));
}

/* There was no descriptor or memory to look with: that says nothing about what is there. */
static bool is_short(int why)
{
	return why == EMFILE || why == ENFILE || why == ENOMEM;
}

/* False: not all could be seen. */
static bool subreaper_look(const struct tree *t, struct pids *ret)
{
	cleanup(pids_done) struct pids all = { 0 }, parents = { 0 };
	cleanup(dir_closep) DIR *d = dir_stream(t->dir);
	const struct dirent *ent;
	bool whole = d;

	while (d && (ent = readdir(d))) {
		pid_t pid = pid_of(ent->d_name), parent;

		if (pid <= 1 || is_spared(t, pid))
			continue;
		errno = 0;
		parent = parent_of(t->dir, ent->d_name);
		if (parent == 0 && is_short(errno))
			whole = false;
		pids_add(&all, pid);
		pids_add(&parents, parent);
	}
	descend(&all, &parents, ret);
	return whole;
}

static void subreaper_list(const struct tree *t, struct pids *ret)
{
	(void)subreaper_look(t, ret);
}

/* Those that are there now stay out of it, and so does what they start. */
static void subreaper_adopt(struct tree *t, pid_t but)
{
	cleanup(pids_done) struct pids now = { 0 };

	subreaper_list(t, &now);
	t->spared = xcalloc(1, sizeof(*t->spared) + now.len * sizeof(t->spared->items[0]));
	for (size_t i = 0; i < now.len; i++)
		if (now.items[i] != but)
			t->spared->items[t->spared->len++] =
				(struct spared){ now.items[i], start_of(t->dir, now.items[i]) };
}

/* --- cgroup --- */

/* The answer's value; -1: pid 1 does not say. */
static int64_t ask(const struct tree *t, enum broker_word word, uint32_t value)
{
	struct broker_packet p = { .word = word, .value = value };

	if (!t->broker || broker_ask(t->broker, &p, -1) != BROKER_YES)
		return -1;
	return p.value;
}

static int cgroup_open(struct tree *t)
{
	return ask(t, BROKER_TREE, 0) < 0 ? -1 : 0;
}

static int cgroup_add(const struct tree *t, pid_t pid)
{
	return ask(t, BROKER_TREE_ADD, (uint32_t)pid) < 0 ? -1 : 0;
}

/* The process is one of ours, and waits for what we tell it: it cannot fail. */
static void cgroup_adopt(struct tree *t, pid_t pid)
{
	(void)cgroup_add(t, pid);
}

/* What cannot be seen is not empty. */
static size_t cgroup_signal(const struct tree *t, int signum)
{
	int64_t n = ask(t, t->wide ? BROKER_WIDE_SIGNAL : BROKER_TREE_SIGNAL, (uint32_t)signum);

	return n < 0 ? 1 : (size_t)n;
}

/* --- session --- */

static int session_open(struct tree *t)
{
	snprintf(t->name, sizeof(t->name), "BERTH_EXEC=%d", getpid());
	(void)open_proc(t); /* without it the session leader alone is found */
	return 0;
}

static bool has_marker(const struct tree *t, const char *pid)
{
	cleanup(free_ptr) char *text = xcalloc(1, 1 << 18);
	size_t want = strlen(t->name) + 1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "%.20s/environ", pid);
	n = read_at(t->dir, path, text, 1 << 18);
	return n > 0 && memmem(text, (size_t)n, t->name, want);
}

static size_t session_signal(const struct tree *t, int signum)
{
	cleanup(pids_done) struct pids found = { 0 };
	cleanup(dir_closep) DIR *d = dir_stream(t->dir);
	const struct dirent *ent;

	if (!d && t->session > 0 && kill(t->session, 0) == 0)
		pids_add(&found, t->session);
	while (d && (ent = readdir(d))) {
		pid_t pid = pid_of(ent->d_name);

		if (pid > 1 && pid != getpid() &&
		    ((t->session > 0 && getsid(pid) == t->session) || has_marker(t, ent->d_name)))
			pids_add(&found, pid);
	}
	for (size_t i = 0; i < found.len; i++)
		(void)kill(found.items[i], signum); /* it may just have ended */
	return found.len;
}

/* Of a session there is no part to be told from the rest. */
static void no_adopt(struct tree *t, pid_t pid)
{
	t->session = pid;
}

/* --- signals --- */

static int pin(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0)
		return errno == ESRCH || errno == EINVAL ? PIN_GONE : PIN_NONE;
	return fd;
}

static int pin_signal(int fd, int signum)
{
	return (int)syscall(SYS_pidfd_send_signal, fd, signum, NULL, 0);
}

enum kin {
	KIN_OURS,
	KIN_OTHER,
	KIN_UNSEEN, /* there was nothing to look with */
};

/*
 * Does it still descend from us? Its parent is one of those before it, and if that one is there
 * after we looked, its number was its own when we did. If it is not, there is another parent now.
 */
static enum kin kin_now(int proc, const struct pids *found, const int *pins, size_t at)
{
	char name[16];
	pid_t parent;

	snprintf(name, sizeof(name), "%d", found->items[at]);
	for (size_t i = 0; i <= at; i++) {
		size_t k = 0;

		errno = 0;
		parent = parent_of(proc, name);
		if (parent == 0 && is_short(errno))
			return KIN_UNSEEN;
		if (parent == getpid())
			return KIN_OURS;
		while (k < at && found->items[k] != parent)
			k++;
		if (k == at || pins[k] == PIN_GONE)
			return KIN_OTHER;
		if (pins[k] == PIN_NONE || pin_signal(pins[k], 0) == 0)
			return KIN_OURS;
	}
	return KIN_OTHER;
}

static enum kin pin_and_look(int proc, const struct pids *found, int *pins, size_t at)
{
	pins[at] = proc < 0 ? PIN_NONE : pin(found->items[at]);
	if (pins[at] < 0)
		return pins[at] == PIN_GONE ? KIN_OTHER : KIN_UNSEEN;
	return kin_now(proc, found, pins, at);
}

/* From then on their numbers are believed. */
static bool let_go(int *pins, size_t from, size_t to)
{
	bool any = false;

	for (size_t i = from; i < to; i++) {
		if (pins[i] < 0)
			continue;
		close_fd(&pins[i]);
		pins[i] = PIN_NONE;
		any = true;
	}
	return any;
}

/*
 * To those that were found, and to none that has the number of one by now. Each is held for the
 * sake of its children; where descriptors are too few for that, those before it are let go.
 */
static void signal_found(const struct pids *found, int signum)
{
	cleanup(close_fd) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(free_ptr) int *pins = xcalloc(found->len + 1, sizeof(*pins));
	size_t held = 0;

	for (size_t i = 0; i < found->len; i++) {
		enum kin kin = pin_and_look(proc, found, pins, i);

		if (kin == KIN_UNSEEN) {
			if (let_go(pins, held, i + 1))
				kin = pin_and_look(proc, found, pins, i);
			held = i;
		}
		if (kin == KIN_OTHER && pins[i] >= 0) {
			close_fd(&pins[i]);
			pins[i] = PIN_GONE;
		} else if (pins[i] >= 0) {
			(void)pin_signal(pins[i], signum); /* it may just have ended */
		} else if (pins[i] == PIN_NONE) {
			(void)kill(found->items[i], signum);
		}
	}
	(void)let_go(pins, held, found->len);
}

static size_t subreaper_signal(const struct tree *t, int signum)
{
	cleanup(pids_done) struct pids found = { 0 };

	subreaper_list(t, &found);
	if (signum != 0)
		signal_found(&found, signum);
	return found.len;
}

/* --- the tree --- */

/* clang-format off */
static const struct tree_kind kinds[] = {
	{ subreaper_open, NULL,       subreaper_signal, subreaper_adopt, false },
	{ cgroup_open,    cgroup_add, cgroup_signal,    cgroup_adopt,    false },
	{ session_open,   NULL,       session_signal,   no_adopt,        true },
};
/* clang-format on */

void tree_open(struct tree *t, struct broker *broker)
{
	*t = (struct tree){ .dir = -1, .broker = broker };
	for (size_t i = 0; i < array_len(kinds); i++) {
		t->kind = &kinds[i];
		if (t->kind->open(t) == 0)
			return;
	}
}

void tree_close(struct tree *t)
{
	if (t->kind)
		close_fd(&t->dir);
	free(t->spared);
	*t = (struct tree){ .dir = -1 };
}

void tree_mark(const struct tree *t, struct strv *env)
{
	if (t->kind->marked)
		strv_add(env, t->name);
}

bool tree_needs_add(const struct tree *t)
{
	return t->kind->add;
}

int tree_add(const struct tree *t, pid_t pid, struct err *e)
{
	if (!t->kind->add || t->kind->add(t, pid) == 0)
		return 0;
	return err_set(e, ERR_BUSY, "the sandbox's init cannot keep account of a new process");
}

int tree_ticks(pid_t pid, uint64_t ret[4])
{
	cleanup(close_fd) int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (proc < 0 || field_of(proc, pid, 4) == 0)
		return -1;
	for (int i = 0; i < 4; i++)
		ret[i] = field_of(proc, pid, 14 + i);
	return 0;
}

bool tree_on_linux(const struct tree *t)
{
	return t->kind == &kinds[0];
}

void tree_adopt(struct tree *t, pid_t pid)
{
	t->adopted = pid;
	t->kind->adopt(t, pid);
}

void tree_widen(struct tree *t)
{
	free(take_ptr(t->spared));
	t->wide = true;
}

void tree_signal(const struct tree *t, int signum)
{
	(void)t->kind->send(t, signum);
}

bool tree_is_empty(const struct tree *t)
{
	return t->kind->send(t, 0) == 0;
}

size_t tree_kill(struct tree *t)
{
	size_t before = 0, seen;

	/*
	 * When a shell ends while one of its group is stopped, gVisor sends a hangup to
	 * all of it, also to what is spared here. So no process is stopped unless it must be.
	 */
	if (t->adopted > 0 && t->kills++ < TREE_PLAIN_KILLS)
		return t->kind->send(t, SIGKILL);
	seen = t->kind->send(t, SIGSTOP);
	for (int round = 0; seen > before && round < TREE_ROUNDS_MAX; round++) {
		before = seen;
		seen = t->kind->send(t, SIGSTOP);
	}
	return t->kind->send(t, SIGKILL);
}

/* --- orphans --- */

/* All that descends from us, but for ours and what descends from them. */
static bool list_descendants(const struct tree_ours *ours, struct pids *ret)
{
	struct tree t = { .kind = &kinds[0], .dir = -1 };
	bool whole;

	if (open_proc(&t) < 0)
		return false;
	t.spared = xcalloc(1, sizeof(*t.spared) + ours->count * sizeof(struct spared));
	for (size_t i = 0; i < ours->count; i++)
		t.spared->items[t.spared->len++] =
			(struct spared){ ours->pids[i], start_of(t.dir, ours->pids[i]) };
	whole = subreaper_look(&t, ret);
	tree_close(&t);
	return whole;
}

/* One more than were found, if there may be others. */
static size_t signal_orphans(const struct tree_ours *ours, int signum)
{
	cleanup(pids_done) struct pids pids = { 0 };
	bool whole = list_descendants(ours, &pids);

	signal_found(&pids, signum);
	return pids.len + !whole;
}

size_t orphans_kill(const struct tree_ours *ours)
{
	size_t before = 0, seen = signal_orphans(ours, SIGSTOP);

	for (int round = 0; seen > before && round < TREE_ROUNDS_MAX; round++) {
		before = seen;
		seen = signal_orphans(ours, SIGSTOP);
	}
	return seen ? signal_orphans(ours, SIGKILL) : 0;
}

bool tree_lacks_subreaper(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0;
}

/*
 * Everything one command has started, whatever it did to get away: setsid,
 * double forks, daemons.
 *
 * How the members are found differs by kernel; tree_open() takes the first way
 * that works here:
 *
 *   subreaper  Linux: orphans come back to this process, /proc tells the rest
 *   cgroup     gVisor has no subreaper, but a cgroup filesystem of its own; see cgroup.h
 *   session    neither: the command's session, and a marker in the environment
 */
#pragma once

#include <sys/types.h>

#include "init/pid1-broker.h"
#include "lib/err.h"
#include "lib/strv.h"

struct tree {
	const struct tree_kind *kind;
	struct broker *broker;      /* to pid 1, which keeps the cgroups */
	int dir;                    /* /proc */
	char name[64];              /* the marker */
	pid_t session;              /* of the command; 0 until it runs */
	pid_t adopted;              /* see tree_adopt() */
	unsigned kills;             /* how often it was killed */
	struct tree_spared *spared; /* likewise */
	bool wide;                  /* see tree_widen() */
};

void tree_open(struct tree *t, struct broker *broker); /* NULL: there is none */
void tree_close(struct tree *t);                       /* what still lives, lives on */

/* Add what members must have in their environment. Before the fork. */
void tree_mark(const struct tree *t, struct strv *env);

/* Before a new process runs anything, if this tree needs it. */
bool tree_needs_add(const struct tree *t);
must_check int tree_add(const struct tree *t, pid_t pid, struct err *e);

/*
 * For a shell that runs one command after another: from now on this process and
 * what it starts are the tree. What was started before is not.
 */
void tree_adopt(struct tree *t, pid_t pid);

/* Everything that any tree of this process was ever about. */
void tree_widen(struct tree *t);

/* Its time as a user and in the kernel, then that of its children that ended; 100 a second. */
must_check int tree_ticks(pid_t pid, uint64_t ret[4]);

bool tree_on_linux(const struct tree *t); /* and not on something that is only like it */

/* On Linux by pidfd: none gets it that has the number of a member which has ended meanwhile. */
void tree_signal(const struct tree *t, int signum);
bool tree_is_empty(const struct tree *t);

/* The processes of pid 1's own that serve connections. */
struct tree_ours {
	const pid_t *pids;
	size_t count;
};

/*
 * Kill what those of ours that are gone had started: one that ends by itself has waited
 * until nothing of it was left, so it was killed. Returns how many were seen, and one more if
 * not all could be; reap and call again until none are. Not where tree_lacks_subreaper():
 * nothing tells there which process an orphan of pid 1 comes from.
 */
must_check size_t orphans_kill(const struct tree_ours *ours);

/*
 * Orphans do not come back to the process that started them: gVisor. pid 1 itself cannot
 * find out, since it gets them anyway.
 */
bool tree_lacks_subreaper(void);

/*
 * Kill everything in it; returns how many were seen. They are stopped first, so that a
 * fork bomb cannot outrun it. Reap and call again until nothing is seen and there is
 * no child left to wait for.
 */
must_check size_t tree_kill(struct tree *t);

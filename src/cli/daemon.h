/*
 * A daemon under supervision: started with exactly what it needs, started
 * again when it dies, stopped with certainty.
 *
 * Its pid is in a file from before its first instruction, so a supervisor that
 * was killed finds it again. A pid in a file is only a hint: a process is signalled
 * only after it was seen to be that program, working on our directory.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "lib/err.h"
#include "lib/proc.h"

#define DAEMON_ARGS_MAX 16

/* The user a program runs as. */
struct account {
	char name[64];
	uid_t uid;
	gid_t gid;
};

/* The unprivileged account of the house: berth if there is one, else the user `nobody`. */
must_check int account_find(struct account *ret, struct err *e);

/* The account of berth-egress: berth-egress if there is one, else a number without a name. */
must_check int account_find_egress(struct account *ret, struct err *e);

/* In a child: become that account for good, without groups, capabilities or a way back. */
must_check int account_become(const struct account *a); /* -1 with errno */

struct daemon {
	const char *name; /* names its log and its pid file too */
	char program[PATH_MAX];
	const char *argv[DAEMON_ARGS_MAX]; /* the strings are the owner's */
	const struct account *account;     /* NULL: stay root */
	int stop_signal;
	unsigned stop_ms; /* how long a stop may take before it is killed */

	bool wanted; /* a death is followed by a start */
	struct proc proc;
	uint64_t started_ms;
	uint64_t again_ms; /* when to start it again */
	unsigned fast_deaths;
};

/* Where pid files and logs are, and the directory that the daemons' command lines name. */
struct daemon_home {
	const char *dir;
	int runfd, logfd;
};

bool daemon_runs(const struct daemon *d);
must_check int daemon_start(struct daemon *d, const struct daemon_home *home, struct err *e);

/* It was seen to end. Says so in one line, decides when it starts again. */
void daemon_ended(struct daemon *d, int status, uint64_t now_ms);

/* One left over from a supervisor that is no more: stopped, and seen to be gone. */
must_check int daemon_stop_stale(const struct daemon *d, const struct daemon_home *home,
				 struct err *e);

/* True if this pid is that program, with our directory on its command line. */
bool daemon_is(pid_t pid, const struct daemon *d, const struct daemon_home *home);

/* A small clean environment for children; strv_done() it. */
struct strv daemon_environment(void);

/*
 * pid 1: takes connections, hands each to a process of its own, reaps every
 * orphan, and ends the sandbox when told to. It parses nothing but what its own
 * processes ask of it (pid1-broker.h).
 *
 * A guest's root can stop and kill those processes, but not us: one that is stopped
 * is told to go on, and what a killed one had started is ended: on Linux all that
 * descends from us and from none of them, on gVisor what is in its cgroups.
 *
 * One of them is started ahead of need. When a guest has taken every process it may
 * have, that one serves what needs no process of its own: above all, to end others.
 */
#pragma once

#include <limits.h>
#include <sys/types.h>

#include "init/tree.h"
#include "init/unseen.h"
#include "lib/err.h"
#include "proto/exec.h"

#define SERVER_OPERATIONS_MAX 1024

#define SERVER_SPENT_MAX      256

struct server_operation {
	pid_t pid;
	uint32_t serial;       /* no other ever has it */
	uint32_t tree;         /* which of its cgroups it has now; 0: none yet */
	bool unaccounted;      /* it wanted one in vain: what it starts is in none */
	int broker;            /* -1: it hung up */
	unsigned stops;        /* how often a guest has stopped it */
	char id[EXEC_ID_SIZE]; /* of the exec it runs */
	bool ended;            /* that has, and left something running */
};

struct server {
	int listener;
	int sigfd;
	bool stopping;
	uint64_t stop_by_ms;
	size_t count;
	struct server_operation operations[SERVER_OPERATIONS_MAX];

	pid_t spare; /* one of them; 0: none could be started yet */
	int spare_queue;

	bool orphans;       /* one of them is gone, and what it started may live */
	bool unaccounted;   /* so is one that was killed, and pid 1 cannot find that */
	bool no_subreaper;  /* see tree.h, */
	bool kernel_known;  /* once the first spare has told */
	bool has_cgroups;   /* see cgroup.h: they are our working directory, */
	char cwd[PATH_MAX]; /* and this is that of all others */
	uint32_t serial;    /* of the last one started */
	bool torn;          /* it ran an exec, of which no record will come */
	struct unseen unseen;

	/* Ids that were asked for in vain: the last so many. A ring. */
	char spent[SERVER_SPENT_MAX][EXEC_ID_SIZE];
	size_t spent_next;
};

/* A socket that another process bound and listens on. */
must_check int server_open_fd(struct server *s, int fd, struct err *e);

/* A socket of our own at this path, instead of what was there. */
must_check int server_open_path(struct server *s, const char *path, struct err *e);

/* For pid 1: what it needs to keep account of processes on gVisor. */
must_check int server_hide_cgroups(struct server *s, struct err *e);

/* Until SIGTERM or SIGINT, and then until everything has ended. */
void server_run(struct server *s);

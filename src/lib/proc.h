/*
 * Child processes: started with exactly the descriptors they are given, known
 * by pidfd, and gone with certainty.
 */
#pragma once

#include <sys/types.h>

#include "lib/err.h"
#include "lib/strv.h"

#define PROC_PASS_MAX 4

struct proc_spec {
	const char *const *argv; /* argv[0] is a path, or found on PATH */
	const char *const *env;  /* NULL: this process's own */
	int program;             /* 0: argv[0]; else a descriptor to execute instead */
	int in, out, err;        /* -1: /dev/null */
	int pass[PROC_PASS_MAX]; /* become 3, 4, ...; `pass_count` of them */
	size_t pass_count;
	const char *cwd; /* NULL: stay */

	/* Runs in the child before execve(). -1 with errno ends it with status 127. */
	int (*prepare)(void *arg);
	void *arg;
};

struct proc {
	pid_t pid;
	int pidfd; /* readable when it has ended */
};

must_check int proc_start(const struct proc_spec *spec, struct proc *ret, struct err *e);

/* True once it has ended; `*status` is then as from waitpid(). Never waits. */
must_check bool proc_ended(struct proc *p, int *status);

/* Wait for its end. For programs without a loop. */
int proc_wait(struct proc *p);

void proc_kill(const struct proc *p, int signum); /* harmless once it has ended */

/*
 * In a fork that lives on by itself: these become 3, 4, ...; everything else that was its
 * parent's is closed, its locks and sockets above all. False: it must not go on.
 */
must_check bool proc_keep_only(int *fds, int count);

/*
 * As many open files as the host allows us: a daemon holds some per sandbox and connection, and
 * berth-node cannot give a sandbox more than it has. Root is held by no hard limit below this.
 */
#define PROC_FILES_WANTED 65536
void proc_raise_files(void);
uint64_t proc_files(void); /* how many it may have open */

/* "exited with 3", "killed by signal 9" */
void proc_status_text(int status, char *out, size_t size);

/*
 * A field of /proc/PID/stat, from 1; the name in parentheses is the second. ERR_INVALID: it is no
 * number; else the process is gone, or cannot be looked at.
 */
must_check int proc_stat_field(pid_t pid, int field, uint64_t *ret, struct err *e);

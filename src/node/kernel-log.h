/*
 * What the host's kernel says about a process that it killed for memory: its log names it. The
 * count of a cgroup does not say which one it was.
 *
 * The log holds what guests chose (the names of their programs) and what any user may write
 * there. Only the kernel's own records count, and of these only what stands before a name.
 */
#pragma once

#include <sys/types.h>

#include "lib/err.h"
#include "proto/node.h"

#define KERNEL_LOG_KILLS 256 /* that are remembered */

#define KERNEL_LOG_TASKS 1024
#define KERNEL_LOG_GROUP 192
#define KERNEL_LOG_SIZES 4

/* A line of the list that the kernel writes before it kills. */
struct kernel_task {
	pid_t pid, process;              /* two numbers: a thread, whose process has another */
	uint64_t size[KERNEL_LOG_SIZES]; /* of its memory: mapped, resident, and two more */
};

struct kernel_kill {
	pid_t pid; /* of the host; later it may be another's */
	uint64_t at_us;
	uint64_t read_boot_ms;        /* it was not later than this */
	bool alone;                   /* it ended this process, and no other */
	char group[KERNEL_LOG_GROUP]; /* the path of its cgroup; "": not known */
};

struct kernel_log {
	int fd;        /* -1: it was not read yet, or cannot be */
	bool begun;    /* at all, since something was missing */
	uint64_t last; /* when its newest record was written, in its own time */
	uint64_t from; /* from when on none is missing */
	size_t tasks;  /* of the kill that comes; more than there is place for: not all are here */
	struct kernel_task task[KERNEL_LOG_TASKS];
	char group[KERNEL_LOG_GROUP];
	pid_t chosen;       /* by the kernel, after that list; 0: none */
	size_t count;       /* of kills, ever */
	uint64_t forgot_us; /* when the newest was that is no longer among these */
	struct kernel_kill kills[KERNEL_LOG_KILLS];
};

void kernel_log_init(struct kernel_log *l);
void kernel_log_close(struct kernel_log *l);

/* One record, as /dev/kmsg gives it. */
struct kernel_record {
	uint64_t at_us;
	pid_t killed;            /* for memory; 0: it is about something else */
	bool list;               /* of tasks begins: one of these comes before most kills */
	struct kernel_task task; /* of it; 0: it is about something else */
	struct bytes group;      /* behind the list, of the process that is killed next */
	pid_t chosen;            /* and that process; it may end by itself before it is killed */
};
must_check bool kernel_record_parse(struct bytes text, struct kernel_record *ret);

/* Remembers what a record says. */
void kernel_log_take(struct kernel_log *l, struct bytes text);

/* Something of it was not read: what is known begins with the next record. */
void kernel_log_gap(struct kernel_log *l);

/*
 * So long ago it was at least. The clock of the log is near the monotonic one (`now_us`), but
 * nothing keeps them together; what the log has said since was said by the same clock.
 */
uint64_t kernel_log_age(const struct kernel_log *l, uint64_t at_us, uint64_t now_us);

/* All that came since it was read last. -1: it cannot be read, or counts other pids than we do. */
must_check int kernel_log_read(struct kernel_log *l);

/* One that ended just now, and that its init keeps until we have looked. */
struct kernel_suspect {
	const char *sandbox; /* its cgroup */
	uint64_t kills;      /* that the kernel counted there, asked after the log was read */
	pid_t init;          /* of the sandbox */
	uint32_t pid;        /* as the namespace of `init` calls it */
	uint64_t boot_ms;    /* it was not there before this */
};

/*
 * Was it killed for memory, by what was read so far?
 *
 * Not every process that a kill ends is named: one that shares the memory of the named one is
 * not, and a process whose first thread has ended is named by another thread. A kill is known to
 * have ended one process alone if the list before it has that as a process, and no second one of
 * its sizes; the kernel writes few lists per second. So it was another one only if all kills that
 * are counted for the sandbox ended others alone, or if those of the last 30 s did, each of them,
 * or were read before it began, or were in another sandbox. Otherwise that is unknown.
 */
enum presence kernel_log_killed(const struct kernel_log *l, const struct kernel_suspect *s);

/* Does it name this process of the host, as one that was killed in the last 30 s? */
bool kernel_log_names(const struct kernel_log *l, pid_t host_pid);

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

struct kernel_kill {
	pid_t pid; /* of the host; later it may be another's */
	uint64_t at_us;
};

struct kernel_log {
	int fd;        /* -1: it was not read yet, or cannot be */
	bool begun;    /* at all */
	uint64_t last; /* when its newest record was written, in its own time */
	uint64_t from; /* from when on none is missing */
	size_t count;  /* of kills, ever */
	struct kernel_kill kills[KERNEL_LOG_KILLS];
};

void kernel_log_init(struct kernel_log *l);
void kernel_log_close(struct kernel_log *l);

/* One record, as /dev/kmsg gives it. */
struct kernel_record {
	uint64_t at_us;
	pid_t killed; /* for memory; 0: it is about something else */
};
must_check bool kernel_record_parse(struct bytes text, struct kernel_record *ret);

/* Remembers what a record says. */
void kernel_log_take(struct kernel_log *l, struct bytes text);

/*
 * So long ago it was at least. The clock of the log is near the monotonic one (`now_us`), but
 * nothing keeps them together; what the log has said since was said by the same clock.
 */
uint64_t kernel_log_age(const struct kernel_log *l, uint64_t at_us, uint64_t now_us);

/*
 * Was this process killed for memory, that ended just now and that its init keeps until we have
 * looked? `pid` is what the namespace of `init` calls it. Unknown: the log cannot be read, or is
 * overwritten too fast.
 */
enum presence kernel_log_killed(struct kernel_log *l, pid_t init, uint32_t pid);

/* By what was read so far; `init` is its own number here. */
enum presence kernel_log_says(const struct kernel_log *l, pid_t init, uint32_t pid);

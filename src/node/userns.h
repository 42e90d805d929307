/*
 * The user namespace of a sandbox. Its ids are mapped to those of the slot, and it is owned by
 * the first of them: what the kernel counts per user (inotify, queued signals and timers, message
 * queues, everything in /proc/sys/user) it counts at the owner as well, so an owner that two
 * sandboxes share is a limit that one can use up for the other, and for the host's root.
 */
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include "lib/err.h"

#define USERNS_RANGE       65536  /* ids */
#define USERNS_SIGNALS     16384  /* queued, and timers, in all of a sandbox */
#define USERNS_QUEUE_BYTES 819200 /* of POSIX message queues, in all of a sandbox */

/* Ids 0..65535 inside are first..first+65535. Forks: for a child on its way to execve(). */
must_check int userns_make(uint32_t first, int *ret, struct err *e);

/*
 * prlimit() of a process in the namespace that `first` owns. Where root has no CAP_SYS_RESOURCE
 * only the owner may set one, and nothing may raise one. -1: errno says why.
 */
must_check int userns_prlimit(uint32_t first, pid_t pid, int resource, struct rlimit limit);

/* Whole-file reads and writes below a directory descriptor. */
#pragma once

#include <dirent.h>

#include "lib/buf.h"
#include "lib/err.h"

/* All of it, whatever interrupts; -1 with errno. */
must_check int write_all(int fd, const void *data, size_t len);

/*
 * Replace `name` below `dirfd` with `data`, whole or not at all: readers see
 * the old file or the new one, also after a power cut.
 */
must_check int file_replace(int dirfd, const char *name, const void *data,
			    size_t len, struct err *e);

/* The same without the wait for the disk: for files that need not survive a power cut. */
must_check int file_replace_fast(int dirfd, const char *name, const void *data,
				 size_t len, struct err *e);

/* Write into a file that is already there (a cgroup or /proc file). */
must_check int file_poke(int dirfd, const char *name, const char *text, struct err *e);

/*
 * Append the whole file to `out`. Past the buffer's ceiling it fails with ERR_TOO_LARGE;
 * a file that is not there is ERR_NOT_FOUND, any other trouble ERR_INTERNAL.
 */
must_check int file_read(int dirfd, const char *name, struct buf *out, struct err *e);

/* A file that holds one number. */
must_check int file_read_u64(int dirfd, const char *name, uint64_t *ret, struct err *e);

/* Make the directory if it is not there, and open it. */
must_check int dir_open(int dirfd, const char *name, unsigned mode, int *ret, struct err *e);

void dir_closep(DIR **dir); /* for cleanup() */

/* Remove a name and everything below it, never following a link. Absent is fine. */
must_check int file_remove_tree(int dirfd, const char *name, struct err *e);

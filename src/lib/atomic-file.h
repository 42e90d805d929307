/*
 * A file that takes a name's place all at once: a reader of the name sees the
 * old contents or all of the new ones, whatever dies in between. It is written
 * without a name where the filesystem can do that, so that nothing is left of
 * one that was given up.
 *
 * Functions return -1 with errno.
 */
#pragma once

#include <sys/stat.h>

#include "lib/base.h"

/* Of the names that things have until they are at their place. A watch does not tell them. */
#define ATOMIC_FILE_PREFIX ".berth-"

struct atomic_file {
	int fd;         /* write here */
	int dir;        /* the caller's; it stays open */
	char name[256]; /* what it will be called */
	char temp[32];  /* what it is called now; empty: nothing */
};

must_check int atomic_file_begin(struct atomic_file *r, int dir, const char *name);

must_check int atomic_file_write(struct atomic_file *r, const void *bytes, size_t len);

/*
 * With the file it replaces, or NULL: then `mode` and our own user. Closes it. Where there is
 * no file of that name it is linked, and a watch sees one that is created.
 */
must_check int atomic_file_commit(struct atomic_file *r, const struct stat *old, mode_t mode);
void atomic_file_abort(struct atomic_file *r); /* also after commit, harmless */

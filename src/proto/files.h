/*
 * Operations on a sandbox's files, as berthd and berth-init speak of them.
 *
 * One connection, one operation: FILE names it; DATA frames carry contents,
 * DATA_END says that they are complete. It ends with DONE or with FAILED; a
 * connection that ends without either means that the outcome is not known.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "proto/reader.h"

#define FILE_PATH_SIZE 4096 /* with the NUL */

enum file_verb {
	FILE_NONE,
	FILE_STAT,   /* ENTRY */
	FILE_LIST,   /* ENTRY*, in order of their paths; DONE.count is 1 if there are more */
	FILE_READ,   /* ENTRY, then DATA* */
	FILE_WRITE,  /* takes DATA*, DATA_END; ENTRY, DONE.count is 1 if it is new */
	FILE_MKDIR,  /* ENTRY, DONE.count is 1 if it is new */
	FILE_MOVE,   /* ENTRY of what it is now */
	FILE_REMOVE, /* DONE.count: how many were removed */
	FILE_WATCH,  /* CHANGE*, until the connection is closed */
	FILE_PACK,   /* DATA*: a tar archive */
	FILE_UNPACK, /* takes DATA*, DATA_END; DONE.count entries */
	FILE_VERB_END
};

enum file_flags {
	FILE_PARENTS = 1,   /* make the directories above it, too */
	FILE_RECURSIVE = 2, /* all that is below it */
	FILE_OVERWRITE = 4, /* what is there may be replaced */
	FILE_HAS_MODE = 8,
	FILE_FROM_END = 16, /* `offset` counts from the end */
};

struct file_request {
	uint32_t verb, flags, mode;
	uint32_t limit;            /* of a list */
	uint64_t offset, length;   /* of a read; a length of 0 means: to the end */
	char path[FILE_PATH_SIZE]; /* absolute */
	char to[FILE_PATH_SIZE];   /* where to move it; or the path a list goes on behind */
};

enum file_type {
	FILE_TYPE_NONE,
	FILE_TYPE_FILE,
	FILE_TYPE_DIRECTORY,
	FILE_TYPE_SYMLINK,
	FILE_TYPE_FIFO,
	FILE_TYPE_SOCKET,
	FILE_TYPE_DEVICE,
	FILE_TYPE_COUNT
};
const char *file_type_name(uint32_t type); /* "directory", for JSON; "none" for what is none */

struct file_entry {
	uint32_t type, mode, uid, gid;
	uint64_t size, mtime_ns, inode;
	char path[FILE_PATH_SIZE];
	char target[FILE_PATH_SIZE]; /* of a symlink */
};

enum file_change_type {
	FILE_CHANGE_NONE,
	FILE_CHANGE_WATCHING, /* from here on nothing is missed */
	FILE_CHANGE_CREATED,
	FILE_CHANGE_MODIFIED,
	FILE_CHANGE_DELETED,
	FILE_CHANGE_MOVED,    /* path is now `to` */
	FILE_CHANGE_OVERFLOW, /* some were missed */
	FILE_CHANGE_COUNT
};
const char *file_change_name(uint32_t type);

struct file_change {
	uint32_t type;
	char path[FILE_PATH_SIZE];
	char to[FILE_PATH_SIZE];
};

struct file_done {
	uint64_t count;
};

struct file_failed {
	uint32_t code;   /* enum err_code */
	char reason[32]; /* see lib/errno-map.h */
	char message[320];
};

void file_request_encode(struct buf *out, const struct file_request *q);
void file_entry_encode(struct buf *out, const struct file_entry *x);
void file_change_encode(struct buf *out, const struct file_change *x);
void file_done_encode(struct buf *out, const struct file_done *x);
void file_failed_encode(struct buf *out, const struct err *why);

/* A request that was accepted can be carried out as it is: a known verb, absolute paths. */
must_check int file_request_decode(struct bytes wire, struct file_request *ret, struct err *e);
must_check int file_request_check(const struct file_request *q, struct err *e);
must_check int file_entry_decode(struct bytes wire, struct file_entry *ret, struct err *e);
must_check int file_change_decode(struct bytes wire, struct file_change *ret, struct err *e);
must_check int file_done_decode(struct bytes wire, struct file_done *ret, struct err *e);
void file_failed_decode(struct bytes wire, struct err *ret); /* garbage becomes ERR_INTERNAL */

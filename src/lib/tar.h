/*
 * tar archives, as a stream of bytes out and in: ustar, with pax records for
 * what does not fit, and GNU's long names when reading. Pure: no file is
 * touched here; lib/pack.h and lib/unpack.h do that.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define TAR_BLOCK     512
#define TAR_PATH_SIZE 4096 /* with the NUL */

enum tar_type {
	TAR_FILE = '0',
	TAR_HARDLINK = '1',
	TAR_SYMLINK = '2',
	TAR_CHARACTER = '3',
	TAR_BLOCKDEV = '4',
	TAR_DIRECTORY = '5',
	TAR_FIFO = '6',
};

struct tar_entry {
	enum tar_type type;
	uint32_t mode, uid, gid;
	uint64_t size, mtime; /* bytes that follow; seconds */
	char path[TAR_PATH_SIZE];
	char target[TAR_PATH_SIZE]; /* of links */
};

/* ---- out ---- */

void tar_add_entry(struct buf *out, const struct tar_entry *x); /* then its bytes, */
void tar_add_padding(struct buf *out, uint64_t size);           /* then this */
void tar_add_end(struct buf *out);

/* ---- in ---- */

/* An entry, its bytes in pieces, its end. Each may fail, and then the reading does. */
struct tar_events {
	int (*entry)(void *data, const struct tar_entry *x, struct err *e);
	int (*bytes)(void *data, const void *bytes, size_t len, struct err *e);
	int (*entry_end)(void *data, struct err *e);
};

struct tar_reader {
	const struct tar_events *events;
	void *data;
	uint8_t block[TAR_BLOCK];
	size_t have;    /* of a head */
	uint64_t left;  /* of an entry's bytes */
	size_t padding; /* behind them */
	bool ended;     /* what comes behind the end is not read */
	char taking;    /* what the bytes are: an entry's ('e'), a long name, records, nothing */
	struct buf extra;
	struct tar_entry x;
	bool has_path, has_target, has_size; /* said before the head they belong to */
	uint64_t said_size;
};

void tar_reader_init(struct tar_reader *r, const struct tar_events *events, void *data);
void tar_reader_done(struct tar_reader *r);
must_check int tar_reader_feed(struct tar_reader *r, const void *bytes, size_t len, struct err *e);
must_check int tar_reader_end(const struct tar_reader *r, struct err *e); /* was that all? */

/*
 * A path of an archive as it may be used below a directory: without "/" in front
 * and without "." in it; "" is that directory itself. ".." is refused.
 */
must_check int tar_path_below(const char *path, char out[TAR_PATH_SIZE], struct err *e);

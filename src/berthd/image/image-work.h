/*
 * An image comes or goes: its files are berth-node's, its name and copies the store's. A copy is
 * recorded before the name that means it, and a name goes before its files: a crash in between
 * leaves files without a name, which `berth check` finds, and never a name without files.
 */
#pragma once

#include "berthd/runtime/reactor.h"
#include "store/image.h"

struct image_work;

struct image_work_sink {
	void (*progress)(void *data, const struct node_image *part); /* may be NULL */
	/* Once, from the loop. The image as recorded (or as it was, of one removed), or why not. */
	void (*done)(void *data, const struct image *image, const struct err *why);
};

struct image_begin {
	struct reactor *reactor;
	const char *request; /* its id, for the log lines of both daemons */
	const char *name;
	const struct image_work_sink *sink;
	void *data; /* the sink's */
};

/* ERR_BUSY while files without a name are being removed. */
must_check int image_pull(const struct image_begin *b, const char *reference,
			  struct image_work **ret, struct err *e);
/* A tar, from the beginning of the file; the descriptor stays the caller's. */
must_check int image_import(const struct image_begin *b, int fd, struct image_work **ret,
			    struct err *e);
struct image_work *image_remove(const struct image_begin *b);

void image_work_leave(struct image_work *w); /* the sink goes away; the work goes on */

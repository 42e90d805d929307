/* The real berth-init (BERTH_INIT), started for a test, and the frames that are spoken to it. */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "proto/exec.h"

#define MB (1 << 20)

extern char init_dir[]; /* a directory of the test's own, while init runs */

void init_start(void);
void init_start_as(void (*before)(void)); /* called in its process, before it is init */
int init_stop(void);                      /* its wait status */

int dial(void);
void send_buf(int fd, const struct buf *b);
struct exec_request shell(const char *script); /* sh -c `script` */
int exec_begin(struct exec_request *q);        /* a connection; the request is done with */

struct result {
	struct buf in, out, err;
	uint32_t pid;
	bool exited, failed, beside;
	struct exec_exit exit;
	struct err e;
};

struct result *result_make(void);           /* one at a time: the next one ends the one before */
bool result_read(struct result *r, int fd); /* once; false at the end of the connection */
struct result *exec_end(int fd);
struct result *exec_all(struct exec_request q);
struct result *run(const char *script);

/* With an id, until its one record. Was it told that it runs beside leftovers? */
bool run_with_id(const char *id, const char *script);

/* KILL_LEFT, and what was said to it. */
struct left {
	bool failed;
	uint32_t killed;
	struct err e;
};
struct left ask_left(const char *id);
uint32_t kill_left(const char *id); /* which must not fail */

const char *mark(void);           /* a number no other process's `sleep` has */
int count_with(const char *word); /* processes that have it in their command line */
void wait_count(const char *word, int want);

/*
 * Files without a name, made ahead by a thread of their own, for journals.
 *
 * To make a file can take a millisecond (ext4 passes by inodes that were freed a
 * moment ago), which is longer than a short command runs. One that is not used ends
 * with this process: nothing is left behind.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#define SPARES_MAX 16

struct tmpfile_pool {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wanted;
	int dir;
	int fds[SPARES_MAX];
	int count;
	bool open, closing;
};

/* Without a thread, or on a file system that has no such files, there never is one. */
void tmpfile_pool_open(struct tmpfile_pool *s, int dir);
void tmpfile_pool_close(struct tmpfile_pool *s);

int tmpfile_pool_take(struct tmpfile_pool *s); /* the caller's; -1: there is none now */

/*
 * pid 1: takes connections, hands each to a process of its own, reaps every
 * orphan, and ends the sandbox when told to. It parses nothing.
 */
#pragma once

#include <sys/types.h>

#include "lib/err.h"

#define SERVER_OPERATIONS_MAX 1024

struct server {
	int listener;
	int sigfd;
	bool stopping;
	uint64_t stop_by_ms;
	size_t count;
	pid_t operations[SERVER_OPERATIONS_MAX];
};

/* A socket that somebody else bound and listens on. */
must_check int server_open_fd(struct server *s, int fd, struct err *e);

/* A socket of our own at this path, instead of whatever was there. */
must_check int server_open_path(struct server *s, const char *path, struct err *e);

/* Until SIGTERM or SIGINT, and then until everything has ended. */
void server_run(struct server *s);

/* A Unix socket of whole packets that one local user may connect to, and root. */
#pragma once

#include <sys/types.h>

#include "lib/err.h"

/* What an earlier berth-node left there is replaced; the lock of RUN says it is gone. */
must_check int listen_socket_open(const char *path, uid_t user, int *ret, struct err *e);

/* The next connection of a user that may come in; -1: none. */
int listen_socket_accept(int listener, uid_t user);

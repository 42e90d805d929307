/*
 * As whom the sandbox's commands run: root, unless the image says otherwise.
 * pid 1 stays root. The processes that serve a connection have root's powers and
 * the user's ids for what they make: files, pipes and terminals are the user's.
 */
#pragma once

#include "lib/err.h"

/* Once, at the start of pid 1: "1000:1000:27,100", see proto/user-ids.h. */
must_check int user_set(const char *ids, struct err *e);

/* One of root's powers, by its number: this process and what it starts never have it again. */
must_check int user_drop_power(unsigned power);

/* In a process that serves: what it makes from now on belongs to the user. -1 with errno. */
must_check int user_make_as(void);

/* In a process that becomes a command: the user, and nothing more, for good. -1 with errno. */
must_check int user_become(void);

/*
 * A new process that waits before it runs anything: the host is told its number, puts it
 * where it belongs, and says GO.
 */
#pragma once

#include <sys/types.h>

#include "init/frame-conn.h"

/* 0: told to go on. -1: the other end is gone, late, or says something else. */
must_check int hold_until_go(struct frame_conn *p, pid_t pid, struct err *e);

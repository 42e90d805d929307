/*
 * Between a command's process and the process of the shell it runs in.
 *
 *   -> EXEC             the directory of its streams, and the request
 *   <- STARTED          it is in the queue, or runs
 *   -> SIGNAL*          to all it started; 9 kills that, and the shell with it
 *   <- EXITED           the end, with the shell's directory
 *   <- ERROR            instead of STARTED
 *
 * The command's process that closes its end wants it killed.
 */
#pragma once

#include "init/command.h"
#include "init/frame-conn.h"
#include "init/pid1-broker.h"
#include "init/shell-text.h"

struct shell_link {
	struct frame_conn peer;   /* fd -1: there is none */
	char dir[SHELL_DIR_SIZE]; /* in, out, err; removed at the end */
	bool input;               /* the shell has not opened the command's input yet */
};

/* A directory of our own where only memory is used up. */
must_check int shell_dir_make(char dir[SHELL_DIR_SIZE], struct err *e);
void shell_dir_remove(const char *dir);

/* Waits until it is in the queue. `ret` stands for the process; its pid is the shell's. */
must_check int shell_link_open(struct shell_link *l, const struct exec_request *q,
			       struct broker *broker,
			       struct command *ret, struct err *e);
void shell_link_close(struct shell_link *l);

/* The command's input, once the shell reads it; -1: not yet. */
int shell_link_input(struct shell_link *l);

/* From now on the end shows on the streams when the last one closes them. */
void shell_link_ended(struct shell_link *l, const struct command *c);

void shell_link_signal(struct shell_link *l, uint32_t signum);

/* 1: it ended; 0: not yet; -1: the shell's process is gone. `wait`: up to that many ms. */
must_check int shell_link_end(struct shell_link *l, int wait_ms, struct exec_exit *ret);

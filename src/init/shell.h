/*
 * A persistent shell: one process of ours keeps a bash (or sh) and runs commands
 * in it, one after another. It is found through pid 1 by ".NAME".
 *
 * Each command has a process of its own as well (exec.c), which has the streams,
 * the connection and the limits; the two speak over a link (shell-link.h).
 */
#pragma once

#include "init/frame-conn.h"
#include "init/pid1-broker.h"

#define SHELL_QUEUE_MAX 64 /* commands, with the one that runs */

/* What a connection that was given to a shell is for: broker_packet.attach.offset[0] */
enum shell_verb {
	SHELL_RUN = 1,
	SHELL_ASK,
	SHELL_END,
};

/* Serve FRAME_SHELL: becomes the shell's process and returns when the shell has ended. */
void shell_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

/* FRAME_SHELL_ASK and FRAME_SHELL_END: handed to the process of the shell. */
void shell_ask_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);
void shell_end_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

/* One question to a shell in a sandbox, and its one answer. */
#pragma once

#include "berthd/exec/init-link.h"
#include "proto/shell.h"

/* The state, or why there is none. */
typedef void (*shell_guest_fn)(void *data, const struct shell_state *state, const struct err *why);

/* FRAME_SHELL: begin it. `done` may be called before these return: make them the last you do. */
void shell_guest_begin(const struct init_dial_ask *way, const struct shell_request *q,
		       shell_guest_fn done, void *data);

/* FRAME_SHELL_ASK or FRAME_SHELL_END. */
void shell_guest_ask(const struct init_dial_ask *way, enum frame_type what, const char *name,
		     shell_guest_fn done, void *data);

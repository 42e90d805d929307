/*
 * One command in a sandbox, over an upgraded connection: standard input up,
 * both outputs down, byte for byte and as they come, and its end.
 */
#pragma once

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"
#include "proto/exec.h"

/* The options that `run` and `exec` share. */
struct exec_options {
	struct strv env;
	const char *cwd;
	uint64_t timeout_ms;
	const char *shell; /* the name of a persistent shell to run it in; NULL: none */
	bool interactive;  /* forward standard input even if it is a terminal */
	bool tty;          /* on a terminal, ours */
	bool background;   /* of `exec` alone */
};

/* The request for these options and the words of a command. exec_request_done() it. */
must_check int exec_stream_request(const struct exec_options *o, char *const *argv, size_t argc,
				   struct exec_request *ret, struct err *e);

/*
 * The exit status for our own caller. The first interrupt is sent to the command; the second
 * closes the connection, which kills it, and waits no longer. -1: nothing is known of it.
 *
 * A server that is killed meanwhile does not end the command: it is gone on with by its id,
 * which the request is given. What could not be started has a status of its own, 126 or 127.
 */
must_check int exec_stream_command(const struct context *c, const char *sandbox,
				   const struct exec_options *o, struct exec_request *request,
				   struct interrupt *stop, struct err *e);

/* Standard input that came whole with the request: sent to the command in frames, then ended. */
#pragma once

#include "berthd/exec/exec.h"

struct exec_input {
	char *text;     /* NULL: none */
	bool stay_open; /* more will come another way */
};

void exec_input_init(struct exec_input *in, char *text);
void exec_input_done(struct exec_input *in);

/* At most a request body's worth: queued at once. No exec (it is one of before): nothing. */
void exec_input_send(struct exec_input *in, struct exec *x);

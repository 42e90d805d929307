/* Where a command's output goes. */
#pragma once

#include "api/exec/exec.h"

/* `input` is the whole standard input, or NULL; it is taken over. */
void exec_json(struct request *rq, struct exec_request *ask, char *input);   /* one answer */
void exec_events(struct request *rq, struct exec_request *ask, char *input); /* a stream */
void exec_tunnel(struct request *rq);                                        /* frames, both ways */

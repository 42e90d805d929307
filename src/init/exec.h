/* The exec operation: one command, from its request to its one terminal record. */
#pragma once

#include "init/peer.h"

/* Serves it on this connection and returns when this process is no longer needed. */
void exec_serve(struct peer *p, const struct frame *request);

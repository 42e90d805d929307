/* FRAME_PORT: does a process listen there? Answered when it is so, or the peer left. */
#pragma once

#include "init/hub.h"
#include "init/peer.h"

void port_serve(struct peer *p, const struct frame *request, struct hub *hub);

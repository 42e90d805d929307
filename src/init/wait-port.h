/* FRAME_PORT: does a process listen there? Answered when it is so, or the peer left. */
#pragma once

#include "init/frame-conn.h"
#include "init/pid1-broker.h"

void wait_port_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

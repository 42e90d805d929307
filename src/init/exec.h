/* The exec operation: one command, from its request to its one terminal record. */
#pragma once

#include "init/frame-conn.h"
#include "init/pid1-broker.h"

/* Serves it on this connection, and on those it is given later; returns when all of it is gone. */
void exec_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

/* ATTACH: give the connection to the process that serves this exec. */
void exec_attach_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

/* KILL_LEFT: have what ended execs left running killed, and say how many there were. */
void exec_kill_left_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

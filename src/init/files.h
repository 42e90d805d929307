/*
 * Operations on files. Each runs in the process of its connection, so none
 * waits behind a command or another operation, and one that the kernel keeps
 * waiting holds up no other. The guest's root is the only root there is here:
 * whatever links the guest plants, they lead to its own files.
 */
#pragma once

#include "init/frame-conn.h"
#include "init/pid1-broker.h"

void files_serve(struct frame_conn *p, const struct frame *request, struct broker *broker);

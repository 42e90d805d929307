/*
 * One connection, served by a process of its own. What goes wrong in it, ends
 * with it, and pid 1 never waits for any of them.
 */
#pragma once

#include "init/pid1-broker.h"

void operation_run(int conn,
		   struct broker *broker); /* takes the connection; `broker` leads to pid 1 */

/*
 * One connection after another, as pid 1 sends them on `queue`, while there is no room
 * for another process. Whatever would start one, or last, is refused. Returns with pid 1.
 */
void operation_run_spare(int queue, struct broker *broker);

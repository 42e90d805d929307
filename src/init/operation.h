/*
 * One connection, served by a process of its own. What goes wrong in it, ends
 * with it, and pid 1 never waits for anybody.
 */
#pragma once

void operation_run(int conn, int hub); /* takes the connection; `hub` leads to pid 1 */

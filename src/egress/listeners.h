/*
 * The sockets sandboxes reach. berth-node makes them in the router's namespace and
 * hands them over, whenever we come: what is handed later takes the place of what was.
 */
#pragma once

#include "egress/egress.h"

void listeners_open(struct egress *g);
void listeners_close(struct egress *g);

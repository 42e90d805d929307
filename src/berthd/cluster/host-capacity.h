#pragma once

#include "proto/node.h"
#include "store/host.h"

/* What berth-node says of the host, in the units of a host's row. */
struct host_capacity host_capacity_of(const struct node_capacity *c);

/* Which processes of a list descend from one of them. */
#pragma once

#include "lib/base.h"

struct process_link {
	uint32_t pid, parent;
	bool inside; /* it is `root`, or descends from it */
};

void process_tree_mark(struct process_link *links, size_t count, uint32_t root);

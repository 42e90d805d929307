#include "core/process-tree.h"

static bool is_inside(const struct process_link *links, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (links[i].inside && links[i].pid == pid)
			return true;
	return false;
}

/* Again until nothing is added: a list that a guest made up may have circles, and any order. */
void process_tree_mark(struct process_link *links, size_t count, uint32_t root)
{
	bool more = true;

	for (size_t i = 0; i < count; i++)
		links[i].inside = root != 0 && links[i].pid == root;
	while (more) {
		more = false;
		for (size_t i = 0; i < count; i++)
			if (!links[i].inside && is_inside(links, count, links[i].parent))
				links[i].inside = more = true;
	}
}

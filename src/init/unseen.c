#include "init/unseen.h"

#include <string.h>

void unseen_add(struct unseen *u, const char *id)
{
	if (unseen_has(u, id))
		return;
	if (u->count == UNSEEN_MAX) {
		u->more = true;
		return;
	}
	memcpy(u->ids[u->count++], id, strlen(id) + 1);
}

bool unseen_has(const struct unseen *u, const char *id)
{
	if (u->more || (!id[0] && u->count > 0))
		return true;
	for (size_t i = 0; i < u->count; i++)
		if (strcmp(u->ids[i], id) == 0)
			return true;
	return false;
}

void unseen_clear(struct unseen *u)
{
	u->count = 0;
	u->more = false;
}

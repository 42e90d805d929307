#include "core/role.h"

#include <string.h>

static const char *const names[ROLE_COUNT] = {
	[ROLE_UNSET] = "unset",
	[ROLE_ANYONE] = "anyone",
	[ROLE_USER] = "user",
	[ROLE_ADMIN] = "admin",
};

bool role_allows(enum role has, enum role needs)
{
	return needs != ROLE_UNSET && has != ROLE_UNSET && has >= needs;
}

const char *role_name(enum role r)
{
	return names[r];
}

enum role role_by_name(const char *name)
{
	for (int r = ROLE_USER; r < ROLE_COUNT; r++)
		if (strcmp(names[r], name) == 0)
			return (enum role)r;
	return ROLE_UNSET;
}

/* Who may do something: a column of the route table, and of every key. */
#pragma once

#include "lib/base.h"

/* In order of power: a key may do what asks for its own role or a lesser one. */
enum role {
	ROLE_UNSET, /* not decided: as a need it is met by no role, as a grant it gives nothing */
	ROLE_ANYONE,
	ROLE_USER,  /* its owner's things */
	ROLE_ADMIN, /* things of all owners, keys and images */
	ROLE_COUNT
};

bool role_allows(enum role has, enum role needs);
const char *role_name(enum role r);

/* Only what a key may have, "user" or "admin"; ROLE_UNSET for anything else. */
enum role role_by_name(const char *name);

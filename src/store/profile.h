/* Profiles: limits under a name. Those that are built in cannot be changed. */
#pragma once

#include "core/limits.h"
#include "core/policy.h"
#include "store/store.h"

#define STORE_PROFILES_MAX 1000 /* rows */

struct profile {
	char name[POLICY_WORD_SIZE];
	struct limits limits;
	bool built_in;
};

/* ERR_INVALID for a name that no profile has: a request that says one means it. */
must_check int store_profile_get(struct store *s, const char *name, struct profile *ret,
				 struct err *e);

/* Made, or changed: what is running keeps the limits it has. */
must_check int store_profile_put(struct store *s, const struct profile *p, struct profile *ret,
				 struct err *e);
must_check int store_profile_remove(struct store *s, const char *name, struct profile *ret,
				    struct err *e);

typedef void profile_fn(const struct profile *p, void *arg);
must_check int store_profiles(struct store *s, profile_fn *on_row, void *arg, struct err *e);

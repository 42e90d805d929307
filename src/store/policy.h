/*
 * Policies, and what they decided for an agent session: stored before its
 * sandbox is first used, and never decided again.
 */
#pragma once

#include "core/identity.h"
#include "core/policy.h"
#include "store/store.h"

#define STORE_POLICIES_MAX 1000 /* rows; a cell with more of them is refused new ones */

must_check int store_policy_add(struct store *s, const struct policy *p, struct policy *ret,
				struct err *e);
must_check int store_policy_remove(struct store *s, uint64_t id, struct policy *ret,
				   struct err *e);

/* All of them; the caller frees *ret. */
must_check int store_policy_list(struct store *s, struct policy **ret, size_t *len,
				 struct err *e);

struct agent_session {
	char identity_key[IDENTITY_LEGACY_SIZE];
	struct policy_choice choice;
	bool identified; /* false: from before it was stored for whom; the next three are empty */
	char org[IDENTITY_PART_MAX + 1];
	char user[IDENTITY_PART_MAX + 1];
	char bot[IDENTITY_PART_MAX + 1];
};

/* ERR_NOT_FOUND if nothing was decided for it. */
must_check int store_session_get(struct store *s, const char *owner, const char *session,
				 struct agent_session *ret, struct err *e);

/* Of a session: where its sandbox is found, for whom. */
bool session_is_decided_so(const struct agent_session *a, const struct agent_session *b);

/* Store this decision, or learn the one that was faster: *ret is what holds. */
must_check int store_session_put(struct store *s, const char *owner, const char *session,
				 const struct agent_session *decided, struct agent_session *ret,
				 struct err *e);

#include "core/policy.h"

#include <stdio.h>
#include <string.h>

static const char *const scope_names[POLICY_SCOPE_COUNT] = {
	[POLICY_GLOBAL] = "global",
	[POLICY_ORG] = "org",
	[POLICY_USER] = "user",
	[POLICY_SESSION] = "session",
};

static const char *const isolation_names[POLICY_ISOLATION_COUNT] = {
	[POLICY_ISOLATION_OPEN] = "",
	[POLICY_PER_SESSION] = "per_session",
	[POLICY_SHARED] = "shared",
};

static bool is_star(const struct policy *p)
{
	return strcmp(p->subject, "*") == 0;
}

int policy_check(const struct policy *p, struct err *e)
{
	if (!p->subject[0])
		return err_set(e, ERR_INVALID, "a policy needs a subject, or \"*\" for everyone");
	if (p->scope == POLICY_GLOBAL && !is_star(p))
		return err_set(e, ERR_INVALID, "the subject of a global policy is \"*\"");
	if (!p->isolation && !p->profile[0] && !p->runtime[0])
		return err_set(e, ERR_INVALID,
			       "a policy decides isolation, profile or runtime; this one nothing");
	return 0;
}

static bool applies(const struct policy *p, const struct policy_caller *c)
{
	const char *who[POLICY_SCOPE_COUNT] = { NULL, c->org, c->user, c->session };
	const char *s = who[p->scope];

	if (is_star(p))
		return true;
	return s && s[0] && strcmp(p->subject, s) == 0;
}

static bool goes_before(const struct policy *a, const struct policy *b)
{
	if (is_star(a) != is_star(b))
		return is_star(b);
	if (a->scope != b->scope)
		return a->scope > b->scope;
	return a->id > b->id;
}

static bool decides_isolation(const struct policy *p)
{
	return p->isolation != POLICY_ISOLATION_OPEN;
}

static bool decides_profile(const struct policy *p)
{
	return p->profile[0];
}

static bool decides_runtime(const struct policy *p)
{
	return p->runtime[0];
}

static const struct policy *first(const struct policy *rows, size_t n,
				  const struct policy_caller *c,
				  bool (*decides)(const struct policy *p))
{
	const struct policy *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (applies(&rows[i], c) && decides(&rows[i]) &&
		    (!best || goes_before(&rows[i], best)))
			best = &rows[i];
	return best;
}

struct policy_choice policy_choose(const struct policy *rows, size_t n,
				   const struct policy_caller *caller)
{
	const struct policy *isolation = first(rows, n, caller, decides_isolation);
	const struct policy *profile = first(rows, n, caller, decides_profile);
	const struct policy *runtime = first(rows, n, caller, decides_runtime);
	struct policy_choice choice = { .isolation = POLICY_PER_SESSION };
	const char *usual;

	if (isolation) {
		choice.isolation = isolation->isolation;
		choice.policy_id = isolation->id;
	}
	usual = choice.isolation == POLICY_SHARED ? POLICY_PROFILE_SHARED : POLICY_PROFILE_OWN;
	snprintf(choice.profile, sizeof(choice.profile), "%s", profile ? profile->profile : usual);
	snprintf(choice.runtime, sizeof(choice.runtime), "%s", runtime ? runtime->runtime : "");
	return choice;
}

const char *policy_scope_name(enum policy_scope s)
{
	return scope_names[s];
}

const char *policy_isolation_name(enum policy_isolation i)
{
	return isolation_names[i];
}

bool policy_scope_by_name(const char *name, enum policy_scope *ret)
{
	for (int s = 0; s < POLICY_SCOPE_COUNT; s++) {
		if (strcmp(scope_names[s], name) != 0)
			continue;
		*ret = (enum policy_scope)s;
		return true;
	}
	return false;
}

bool policy_isolation_by_name(const char *name, enum policy_isolation *ret)
{
	for (int i = 0; i < POLICY_ISOLATION_COUNT; i++) {
		if (strcmp(isolation_names[i], name) != 0)
			continue;
		*ret = (enum policy_isolation)i;
		return true;
	}
	return false;
}

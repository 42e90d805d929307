#include "berthd/api/v1/policies.h"

#include "core/sandbox.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/str.h"
#include "store/policy.h"
#include "store/profile.h"

struct policy_body {
	char scope[16], isolation[16];
	struct policy p;
};

/* clang-format off */
#define POLICY_FIELD(member, ...) \
	{ #member, JSON_STR, offsetof(struct policy_body, p.member), \
	  sizeof(((struct policy_body *)0)->p.member), __VA_ARGS__ }
static const struct json_field fields[] = {
	JSON_FIELD_STR(policy_body, scope, .required = true),
	JSON_FIELD_STR(policy_body, isolation),
	POLICY_FIELD(subject, .required = true),
	POLICY_FIELD(profile),
	POLICY_FIELD(runtime),
	JSON_FIELD_END
};
/* clang-format on */

static void policy_json(struct buf *out, const struct policy *p)
{
	json_open(out, '{');
	json_int(out, "id", (int64_t)p->id);
	json_str(out, "scope", policy_scope_name(p->scope));
	json_str(out, "subject", p->subject);
	json_str(out, "isolation", policy_isolation_name(p->isolation));
	json_str(out, "profile", p->profile);
	json_str(out, "runtime", p->runtime);
	buf_adds(out, "}");
}

static int check(struct policy_body *b, struct store *s, struct err *e)
{
	struct profile profile;

	if (!policy_scope_by_name(b->scope, &b->p.scope))
		return err_set(e, ERR_INVALID, "scope must be global, org, user or session");
	if (!policy_isolation_by_name(b->isolation, &b->p.isolation))
		return err_set(e, ERR_INVALID, "isolation must be per_session or shared");
	if (b->p.profile[0] && store_profile_get(s, b->p.profile, &profile, e) < 0)
		return -1;
	if (b->p.runtime[0] && sandbox_runtime_check(b->p.runtime, e) < 0)
		return -1;
	return policy_check(&b->p, e);
}

int policies_add(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct policy_body b = { 0 };
	struct policy made;

	if (json_read(buf_str(&rq->body), rq->body.len, fields, &b, e) < 0 || check(&b, s, e) < 0 ||
	    store_policy_add(s, &b.p, &made, e) < 0)
		return -1;
	crash_point("life.policy-added");
	policy_json(reply, &made);
	rq->status = 201;
	return 0;
}

int policies_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	cleanup(free_ptr) struct policy *rows = NULL;
	size_t n = 0;

	(void)rq;
	if (store_policy_list(s, &rows, &n, e) < 0)
		return -1;
	json_open(reply, '{');
	json_key(reply, "policies");
	json_open(reply, '[');
	for (size_t i = 0; i < n; i++)
		policy_json(reply, &rows[i]);
	buf_adds(reply, "]");
	json_str(reply, "next", "");
	buf_adds(reply, "}");
	return 0;
}

int policies_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct policy gone;
	uint64_t id;

	if (str_u64(rq->param, &id, e) < 0 || id > INT64_MAX)
		return err_set(e, ERR_INVALID, "a policy's id is a number");
	if (store_policy_remove(s, id, &gone, e) < 0)
		return -1;
	crash_point("life.policy-removed");
	policy_json(reply, &gone);
	return 0;
}

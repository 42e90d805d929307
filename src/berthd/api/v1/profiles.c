#include "berthd/api/v1/profiles.h"

#include <string.h>

#include "berthd/control/limits.h"
#include "core/constants.h"
#include "lib/crash.h"
#include "lib/str.h"
#include "store/profile.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyz0123456789_-"

static const struct json_field fields[] = {
	JSON_FIELD_STR(profile, name, .required = true),
	LIMITS_FIELDS(profile, limits),
	JSON_FIELD_END
};

static void profile_json(const struct profile *p, void *arg)
{
	struct buf *out = arg;

	json_open(out, '{');
	json_str(out, "name", p->name);
	json_bool(out, "built_in", p->built_in);
	limits_json(out, &p->limits);
	buf_adds(out, "}");
}

int profiles_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	(void)rq;
	json_open(reply, '{');
	json_key(reply, "profiles");
	json_open(reply, '[');
	if (store_profiles(s, profile_json, reply, e) < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", "");
	buf_adds(reply, "}");
	return 0;
}

/* Here the name is what is asked for, not a part of it. */
static int not_found(struct err *e)
{
	if (e->code == ERR_INVALID)
		e->code = ERR_NOT_FOUND;
	return -1;
}

int profiles_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct profile p;

	if (store_profile_get(s, rq->param, &p, e) < 0)
		return not_found(e);
	profile_json(&p, reply);
	return 0;
}

/* A profile that names no wall limit has the common one. */
static struct limits usual(void)
{
	struct limits l = limits_usual();

	l.of[LIMIT_WALL_MS] = (int64_t)constant_ms(CONSTANT_STUCK, 1);
	return l;
}

int profiles_put(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct profile p = { .limits = limits_open() }, made;
	struct limits rest = usual();

	if (json_read(buf_str(&rq->body), rq->body.len, fields, &p, e) < 0)
		return -1;
	if (!p.name[0] || strspn(p.name, NAME_CHARS) != strlen(p.name))
		return err_set(e, ERR_INVALID, "name must be of a-z, 0-9, _ and -, not \"%s\"",
			       p.name);
	if (limits_check(&p.limits, true, e) < 0)
		return -1;
	p.limits = limits_fill(&p.limits, &rest);
	if (store_profile_put(s, &p, &made, e) < 0)
		return -1;
	crash_point("life.profile-put");
	profile_json(&made, reply);
	rq->status = 201;
	return 0;
}

int profiles_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct profile gone;

	if (store_profile_remove(s, rq->param, &gone, e) < 0)
		return not_found(e);
	profile_json(&gone, reply);
	return 0;
}

#include "berthd/api/v1/create-body.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/network.h"
#include "berthd/control/create-spec.h"
#include "berthd/control/limits.h"
#include "lib/json.h"
#include "lib/str.h"

struct body {
	struct sandbox_spec spec;
	struct strv labels, env;
	char *identity, *network;
	bool has_labels, has_env, has_keep_alive; /* an empty map is not none */
};

/* clang-format off */
#define SPEC_FIELD(kind, member, ...) \
	{ #member, kind, offsetof(struct body, spec.member), \
	  sizeof(((struct body *)0)->spec.member), __VA_ARGS__ }
static const struct json_field body_fields[] = {
	SPEC_FIELD(JSON_STR, image, .required = true),
	SPEC_FIELD(JSON_STR, runtime),
	SPEC_FIELD(JSON_STR, host),
	LIMITS_FIELDS(body, spec.limits),
	SPEC_FIELD(JSON_STR, name),
	SPEC_FIELD(JSON_INT, sleep_after_ms),
	SPEC_FIELD(JSON_BOOL, keep_alive, JSON_GIVEN(body, has_keep_alive)),
	SPEC_FIELD(JSON_INT, lifetime_ms),
	SPEC_FIELD(JSON_STR, profile),
	JSON_FIELD_MAP(body, labels, JSON_GIVEN(body, has_labels)),
	JSON_FIELD_MAP(body, env, JSON_GIVEN(body, has_env)),
	JSON_FIELD_RAW(body, identity),
	JSON_FIELD_RAW(body, network),
	JSON_FIELD_END
};
/* clang-format on */

static const struct json_field identity_fields[] = {
	JSON_FIELD_STR(create_identity, org),
	JSON_FIELD_STR(create_identity, user),
	JSON_FIELD_STR(create_identity, bot),
	JSON_FIELD_STR(create_identity, session),
	JSON_FIELD_END
};

static void body_done(struct body *b)
{
	strv_done(&b->labels);
	strv_done(&b->env);
	free(b->identity);
	free(b->network);
}

static int read_identity(const char *text, struct create_identity *who, struct err *e)
{
	struct create_identity got = { .given = true };
	struct identity id = { got.org, got.user, got.bot, got.session };
	char key[IDENTITY_KEY_SIZE];

	if (json_read(text, strlen(text), identity_fields, &got, e) < 0)
		return err_wrap(e, "identity");
	if (got.session[0] && identity_session_key(&id, key, e) < 0)
		return -1;
	/* A session may be all there is; whatever else is named must make a whole. */
	if ((!got.session[0] || got.user[0] || got.org[0] || got.bot[0]) &&
	    identity_shared_key(&id, key, e) < 0)
		return -1;
	*who = got;
	return 0;
}

static int check_spec(const struct sandbox_spec *spec, struct err *e)
{
	struct sandbox_spec filled = *spec;

	if (filled.sleep_after_ms == SANDBOX_OPEN)
		filled.sleep_after_ms = 0;
	if (filled.lifetime_ms == SANDBOX_OPEN)
		filled.lifetime_ms = 0;
	return sandbox_spec_check(&filled, e);
}

/* What was said, as long as nothing is filled in. */
static void keep_asked(const struct body *b, struct transition *c)
{
	c->asked = xcalloc(1, sizeof(*c->asked));
	*c->asked = (struct sandbox_asked){
		.spec = c->spec,
		.labels = b->has_labels,
		.env = b->has_env,
		.keep_alive = b->has_keep_alive,
		.network = c->network,
	};
}

int create_body_read(const struct request *rq, struct transition *c, struct err *e)
{
	cleanup(body_done) struct body b = { 0 };

	b.spec.limits = limits_open();
	b.spec.sleep_after_ms = b.spec.lifetime_ms = SANDBOX_OPEN;
	if (json_read(buf_str(&rq->body), rq->body.len, body_fields, &b, e) < 0 ||
	    create_spec_labels(&b.labels, b.spec.labels, e) < 0 ||
	    create_spec_env(&b.env, b.spec.env, e) < 0 ||
	    (b.identity && read_identity(b.identity, &c->who, e) < 0) ||
	    check_spec(&b.spec, e) < 0)
		return -1;
	if (b.network && network_check(&rq->key, b.network, strlen(b.network), e) < 0)
		return err_wrap(e, "network");
	if (b.identity && b.spec.name[0])
		return err_set(e, ERR_INVALID, "give either identity or name, and not both");
	c->spec = b.spec;
	c->network = take_ptr(b.network);
	keep_asked(&b, c);
	return 0;
}

bool create_body_where(const struct request *rq, struct placing_ask *ret)
{
	cleanup(json_free) struct json *body = NULL;
	struct err ignored;

	*ret = (struct placing_ask){ 0 };
	if (json_parse(buf_str(&rq->body), rq->body.len, &body, &ignored) < 0)
		return false;
	ret->limits.of[LIMIT_MEMORY_MB] = json_get_int(body, "memory_mb");
	ret->limits.of[LIMIT_DISK_MB] = json_get_int(body, "disk_mb");
	ret->limits.of[LIMIT_CPU_MILLI] = json_get_int(body, "cpu_milli");
	ret->limits.of[LIMIT_PIDS] = json_get_int(body, "pids");
	ret->limits.of[LIMIT_OPEN_FILES] = json_get_int(body, "open_files");
	ret->may_exist = json_get(body, "name") || json_get(body, "identity");
	if (!json_get_str(body, "image")[0] ||
	    !str_copy(ret->image, sizeof(ret->image), json_get_str(body, "image")) ||
	    !str_copy(ret->host, sizeof(ret->host), json_get_str(body, "host")) ||
	    !str_copy(ret->runtime, sizeof(ret->runtime), json_get_str(body, "runtime")))
		return false;
	return !ret->runtime[0] || sandbox_runtime_check(ret->runtime, &ignored) == 0;
}

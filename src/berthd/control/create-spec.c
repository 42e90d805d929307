#include "berthd/control/create-spec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "core/label.h"
#include "lib/crash.h"
#include "lib/errno-map.h"
#include "lib/json.h"
#include "lib/str.h"
#include "store/network.h"
#include "store/policy.h"
#include "store/profile.h"

#define TRIES 5 /* to find or insert, while others insert and delete the same */

static int map_text(const char *what, const struct strv *map, char *out, size_t size,
		    struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(size - 1);

	json_map(&text, map);
	if (buf_overflowed(&text))
		return err_set(e, ERR_INVALID, "%s: more than %zu bytes as JSON", what, size - 1);
	memcpy(out, buf_str(&text), text.len + 1);
	return 0;
}

int create_spec_labels(const struct strv *labels, char out[SANDBOX_LABELS_SIZE], struct err *e)
{
	if (labels_check(labels, e) < 0)
		return -1;
	/* The database writes a blank behind each colon and comma. */
	return map_text("labels", labels, out, SANDBOX_LABELS_SIZE - 2 * LABELS_MAX, e);
}

int create_spec_env(const struct strv *env, char out[SANDBOX_ENV_SIZE], struct err *e)
{
	return env_check(env, e) < 0 ? -1 : map_text("env", env, out, SANDBOX_ENV_SIZE, e);
}

static int choose(struct store *s, const struct policy_caller *caller, struct policy_choice *ret,
		  struct err *e)
{
	cleanup(free_ptr) struct policy *rows = NULL;
	size_t n = 0;

	if (store_policy_list(s, &rows, &n, e) < 0)
		return -1;
	*ret = policy_choose(rows, n, caller);
	return 0;
}

/* One key may speak for many users: what one of them has in a session is no other's. */
static int check_session_identity(const struct agent_session *held, const struct identity *id,
				  struct err *e)
{
	if (!held->identified || (strcmp(held->org, id->org) == 0 &&
				  strcmp(held->user, id->user) == 0 &&
				  strcmp(held->bot, id->bot) == 0))
		return 0;
	err_set(e, ERR_CONFLICT,
		"session \"%.60s\" is not of this org, user and bot: it was first used with others",
		id->session);
	err_reason(e, REASON_OTHER_IDENTITY, 0);
	return err_fix(e, "Give the identity this session began with, or use another session.");
}

/* What holds for a sandbox to be; `fresh`: it is stored with the sandbox, or not at all. */
struct decision {
	struct agent_session is;
	bool fresh;
};

/* What holds for this session: as it was decided, or as it is decided now. */
static int decide_session(struct transition *c, struct store *s, const struct identity *id,
			  struct decision *ret, struct err *e)
{
	struct policy_caller caller = { id->org, id->user, id->session };
	struct agent_session decided = { 0 };
	struct err ignored;

	if (store_session_get(s, c->sb.owner, id->session, &ret->is, e) == 0)
		return check_session_identity(&ret->is, id, e);
	if (e->code != ERR_NOT_FOUND || choose(s, &caller, &decided.choice, e) < 0)
		return -1;
	/* Without a user the sandbox cannot be shared. */
	if (decided.choice.isolation == POLICY_SHARED &&
	    identity_shared_key(id, decided.identity_key, &ignored) < 0)
		decided.choice.isolation = POLICY_PER_SESSION;
	if (decided.choice.isolation == POLICY_PER_SESSION &&
	    identity_session_key(id, decided.identity_key, e) < 0)
		return -1;
	snprintf(decided.org, sizeof(decided.org), "%s", id->org);
	snprintf(decided.user, sizeof(decided.user), "%s", id->user);
	snprintf(decided.bot, sizeof(decided.bot), "%s", id->bot);
	*ret = (struct decision){ decided, true };
	return 0;
}

static int decide_shared(struct store *s, const struct identity *id, struct agent_session *ret,
			 struct err *e)
{
	struct policy_caller caller = { id->org, id->user, NULL };
	struct policy_choice choice;

	if (identity_shared_key(id, ret->identity_key, e) < 0 ||
	    choose(s, &caller, &choice, e) < 0)
		return -1;
	if (choice.isolation != POLICY_SHARED && strcmp(choice.profile, POLICY_PROFILE_OWN) == 0)
		snprintf(choice.profile, sizeof(choice.profile), POLICY_PROFILE_SHARED);
	choice.isolation = POLICY_SHARED;
	ret->choice = choice;
	return 0;
}

/* A policy that names an engine is not talked out of it. */
static int apply_runtime(struct transition *c, const char *runtime, struct err *e)
{
	struct sandbox_spec *spec = &c->spec;
	const char *usual = c->reactor->berthd->settings.default_runtime;

	if (runtime[0] && spec->runtime[0] && strcmp(runtime, spec->runtime) != 0) {
		err_set(e, ERR_DENIED, "a policy says runtime %s, not %s", runtime, spec->runtime);
		return err_fix(e, "Leave the runtime out, or have the policy changed.");
	}
	if (!spec->runtime[0])
		(void)!str_copy(spec->runtime, sizeof(spec->runtime), runtime[0] ? runtime : usual);
	return 0;
}

/* An org's sandboxes count for the org, whichever of its users asked. */
static void apply_cap(struct transition *c)
{
	const struct create_identity *who = &c->who;
	const struct berthd_settings *set = &c->reactor->berthd->settings;
	struct sandbox_spec *spec = &c->spec;

	if (!who->org[0] && !who->user[0])
		return;
	spec->cap = (int64_t)(who->org[0] ? set->cap_organisation : set->cap_personal);
	if (spec->cap > 0)
		snprintf(spec->cap_subject, sizeof(spec->cap_subject), "%s/%s:%.200s", c->sb.owner,
			 who->org[0] ? "org" : "user", who->org[0] ? who->org : who->user);
}

/* What the request leaves open comes from the profile, or is what everybody gets. */
static int fill_limits(struct transition *c, struct store *s, struct err *e)
{
	struct sandbox_spec *spec = &c->spec;
	struct profile p = { .limits = limits_usual_on(&c->host.most) };
	struct limits files = limits_open();

	if (spec->profile[0] && store_profile_get(s, spec->profile, &p, e) < 0)
		return -1;
	spec->limits = limits_fill(&spec->limits, &p.limits);
	/* Memory and disk may be free later, or elsewhere; this the host cannot give, ever. */
	files.of[LIMIT_OPEN_FILES] = spec->limits.of[LIMIT_OPEN_FILES];
	if (limits_check(&spec->limits, false, e) < 0)
		return -1;
	return limits_fit(&files, &c->host.most, e);
}

/* Nothing ends by its age unless asked for: by the request, or by this server's operator. */
static void fill_lifetime(struct transition *c)
{
	const struct berthd_settings *set = &c->reactor->berthd->settings;
	struct sandbox_spec *spec = &c->spec;

	if (spec->lifetime_ms != SANDBOX_OPEN)
		return;
	spec->lifetime_ms = 0;
	if (!spec->keep_alive && set->max_age_s)
		spec->lifetime_ms = (int64_t)(set->max_age_s * 1000 / set->timer_divisor);
}

static int decide(struct transition *c, struct store *s, struct decision *ret, struct err *e)
{
	const struct create_identity *who = &c->who;
	struct identity id = { who->org, who->user, who->bot, who->session };
	struct policy_caller nobody = { 0 };
	struct agent_session *got = &ret->is;
	struct sandbox_spec *spec = &c->spec;
	unsigned divisor = (unsigned)c->reactor->berthd->settings.timer_divisor;
	int n;

	if (!who->given)
		n = choose(s, &nobody, &got->choice, e);
	else if (who->session[0])
		n = decide_session(c, s, &id, ret, e);
	else
		n = decide_shared(s, &id, got, e);
	if (n < 0 || apply_runtime(c, got->choice.runtime, e) < 0)
		return -1;
	if (who->given) {
		spec->isolation = got->choice.isolation;
		memcpy(spec->identity_key, got->identity_key, sizeof(spec->identity_key));
		if (!spec->profile[0])
			memcpy(spec->profile, got->choice.profile, sizeof(spec->profile));
		apply_cap(c);
	}
	if (fill_limits(c, s, e) < 0)
		return -1;
	/* Who is found again by an identity may sleep; who is not stays as it is. */
	if (spec->sleep_after_ms == SANDBOX_OPEN)
		spec->sleep_after_ms =
			who->given ? (int64_t)constant_ms(CONSTANT_SLEEP_AFTER, divisor) : 0;
	fill_lifetime(c);
	return 0;
}

/* 1: there is one, and it is c->sb; 0: there is none. */
static int find(struct transition *c, struct store *s, struct err *e)
{
	const struct create_identity *who = &c->who;
	struct identity id = { who->org, who->user, who->bot, who->session };
	char legacy[IDENTITY_LEGACY_SIZE] = "";
	struct sandbox_search q = {
		.owner = c->sb.owner,
		.kind = c->spec.name[0] ? ADDRESS_NAME : ADDRESS_KEY,
		.text = c->spec.name[0] ? c->spec.name : c->spec.identity_key,
	};
	struct sandbox got;
	struct err ignored;

	if (!q.text[0])
		return 0;
	if (c->spec.isolation == POLICY_SHARED && identity_legacy_key(&id, legacy, &ignored) == 0)
		q.legacy = legacy;
	if (store_sandbox_find(s, &q, &got, e) < 0)
		return e->code == ERR_NOT_FOUND ? 0 : -1;
	if (!sandbox_holds_name(&got))
		return 0;
	c->sb = got;
	return 1;
}

/* What was said and is not so is told, and not left out in silence. */
static int check_found(struct transition *c, struct store *s, struct err *e)
{
	cleanup(free_ptr) struct network_row *row = NULL;

	if (c->network) {
		row = xcalloc(1, sizeof(*row));
		if (store_network_row(s, c->sb.id, row, e) < 0)
			return -1;
	}
	return sandbox_asked_check(c->asked, &c->sb, row ? row->policy : NULL, e);
}

/* 1: what holds for its session was decided otherwise meanwhile; the caller looks again. */
static int keep_session(struct transition *c, struct store *s, const struct decision *d,
			struct err *e)
{
	struct agent_session holds;

	if (!d->fresh)
		return 0;
	if (store_session_put(s, c->sb.owner, c->who.session, &d->is, &holds, e) < 0)
		return -1;
	return session_is_decided_so(&holds, &d->is) ? 0 : 1;
}

/* The key, if there is one, is from here on that of the sandbox that was found. */
static int take_key(struct transition *c, struct store *s, struct err *e)
{
	return c->use.key[0] ? store_idempotency_found(s, &c->use, c->sb.id, e) : 0;
}

/* The answer to a key that was used is the first one's, not the one of who is found. */
static int used_before(struct transition *c, struct store *s, struct err *e)
{
	struct idempotency first;

	if (!c->use.key[0])
		return 0;
	if (store_idempotency_get(s, &c->use, &first, e) < 0 && e->code != ERR_CONFLICT)
		return e->code == ERR_NOT_FOUND ? 0 : -1; /* not reached is not used */
	c->used_before = true;
	return err_set(e, ERR_CONFLICT, "this Idempotency-Key was used before");
}

/* Said before anything is written: a record of what can never run would only fail. */
static int check_engine(const struct transition *c, struct err *e)
{
	const struct berthd *b = c->reactor->berthd;
	const char *runtime = c->spec.runtime;

	if (host_has_engine(&c->figures, runtime))
		return 0;
	err_set(e, ERR_UNSUPPORTED, "host %s has no %s, the engine of this runtime",
		b->settings.host, runtime);
	err_reason(e, REASON_ENGINE_MISSING, 0);
	return err_fix(e, "Install %s there (%s), or ask for another runtime.", runtime,
		       strcmp(runtime, "crun") == 0 ? "apt install crun" : "https://gvisor.dev");
}

/* It was found: 1 if that was not the one, after all. */
static int take_found(struct transition *c, struct store *s, const struct decision *d,
		      struct err *e)
{
	int n = check_found(c, s, e) < 0 ? -1 : keep_session(c, s, d, e);

	return n ? n : take_key(c, s, e);
}

static int insert(struct transition *c, struct store *s, const struct decision *d, struct err *e)
{
	unsigned divisor = (unsigned)c->reactor->berthd->settings.timer_divisor;
	struct sandbox_intent intent = {
		.id = c->sb.id,
		.owner = c->sb.owner,
		.host = c->reactor->berthd->settings.host,
		.spec = &c->spec,
		.room = &c->host,
		.full = &c->full,
		.deadline_ms = lifecycle_deadline_ms(SANDBOX_CREATING, divisor),
		.network = c->network,
		.use = c->use.key[0] ? &c->use : NULL,
		.session = c->who.session,
		.decided = d->fresh ? &d->is : NULL,
	};
	int n = store_sandbox_insert(s, &intent, &c->sb, e);

	c->wrote = n == 0;
	c->used_before = n == 1;
	if (n == 0)
		crash_point("life.intent-written");
	if (n == 1)
		return err_set(e, ERR_CONFLICT, "this Idempotency-Key was used before");
	return n;
}

/* 1: others were at it at the same time; look again. */
static int find_or_insert(struct transition *c, struct store *s, struct err *e)
{
	struct decision d = { 0 };
	bool addressed;
	int n;

	if (decide(c, s, &d, e) < 0)
		return -1;
	addressed = c->spec.name[0] || c->spec.identity_key[0];
	n = used_before(c, s, e);
	if (n == 0)
		n = find(c, s, e);
	if (n < 0)
		return -1;
	c->found = n == 1;
	if (c->found)
		return take_found(c, s, &d, e);
	if (c->nowhere) {
		*e = *c->nowhere;
		return -1;
	}
	if (check_engine(c, e) < 0)
		return -1;
	if (insert(c, s, &d, e) == 0)
		return 0;
	return e->code == ERR_CONFLICT && addressed && !c->used_before ? 1 : -1;
}

int create_spec_write(struct transition *c, struct store *s, struct err *e)
{
	cleanup(free_ptr) struct sandbox_spec *asked = xcalloc(1, sizeof(*asked));
	cleanup(free_ptr) struct sandbox *new = xcalloc(1, sizeof(*new));
	int n = 1;

	*asked = c->spec; /* what is left open in it may be decided otherwise the next time */
	*new = c->sb;     /* and one that was found may not be the one, after all */
	c->full = false;
	for (int i = 0; i < TRIES && n == 1; i++) {
		c->spec = *asked;
		c->sb = *new;
		n = find_or_insert(c, s, e);
	}
	if (n == 1)
		return err_set(e, ERR_BUSY,
			       "others make and delete this sandbox at the same time");
	return n;
}

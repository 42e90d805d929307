/* PATCH /v1/sandboxes/{}: what its owner may change, and how limits come into force. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/sandboxes.h"
#include "berthd/control/capacity.h"
#include "berthd/control/create-spec.h"
#include "berthd/control/limits.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/profile.h"

#define PATCH_TRIES 4

struct patch_body {
	struct strv labels, env, set_env, unset_env;
	int64_t sleep_after_ms, lifetime_ms;
	bool keep_alive;
	char profile[POLICY_WORD_SIZE];
	struct limits limits;
	bool has_labels, has_env, has_sleep, has_keep, has_lifetime; /* an empty map is not none */
};

static const struct json_field patch_fields[] = {
	JSON_FIELD_MAP(patch_body, labels, JSON_GIVEN(patch_body, has_labels)),
	JSON_FIELD_MAP(patch_body, env, JSON_GIVEN(patch_body, has_env)),
	JSON_FIELD_MAP(patch_body, set_env),
	JSON_FIELD_STRV(patch_body, unset_env),
	JSON_FIELD_INT(patch_body, sleep_after_ms, JSON_GIVEN(patch_body, has_sleep)),
	JSON_FIELD_BOOL(patch_body, keep_alive, JSON_GIVEN(patch_body, has_keep)),
	JSON_FIELD_INT(patch_body, lifetime_ms, JSON_GIVEN(patch_body, has_lifetime)),
	JSON_FIELD_STR(patch_body, profile),
	LIMITS_FIELDS(patch_body, limits),
	JSON_FIELD_END
};

struct patching {
	struct job job;
	struct request *rq;
	struct patch_body body;
	bool limits; /* at least one is given, or a profile */
	char labels[SANDBOX_LABELS_SIZE], env[SANDBOX_ENV_SIZE];
	struct placement_host room;
	struct sandbox was, sb;
	struct err refusal;
};

static void patching_free(struct patching *p)
{
	strv_done(&p->body.labels);
	strv_done(&p->body.env);
	strv_done(&p->body.set_env);
	strv_done(&p->body.unset_env);
	free(p);
}

static void answer(struct patching *p, const struct err *why)
{
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct request *rq = p->rq;
	struct err e;

	if (why) {
		e = *why;
		patching_free(p);
		return request_fail(rq, &e);
	}
	sandbox_json(&body, &p->sb);
	patching_free(p);
	request_reply(rq, 200, &body);
}

/* ---- the request ---- */

static bool names_limits(const struct patch_body *b)
{
	bool named = b->profile[0];

	for (int i = 0; i < LIMIT_COUNT; i++)
		named |= b->limits.of[i] != LIMIT_OPEN;
	return named;
}

static bool some_env(const struct patching *p)
{
	return p->body.set_env.len > 0 || p->body.unset_env.len > 0;
}

static int read_body(struct patching *p, struct err *e)
{
	struct patch_body *b = &p->body;
	const struct buf *text = &p->rq->body;

	b->limits = limits_open();
	if (json_read(buf_str(text), text->len, patch_fields, b, e) < 0 ||
	    create_spec_labels(&b->labels, p->labels, e) < 0 ||
	    create_spec_env(&b->env, p->env, e) < 0)
		return -1;
	if (b->has_env && some_env(p))
		return err_set(e, ERR_INVALID, "give either env or set_env and unset_env");
	if (sandbox_sleep_check(b->sleep_after_ms, e) < 0 ||
	    sandbox_lifetime_check(b->lifetime_ms, e) < 0)
		return -1;
	p->limits = names_limits(b);
	return limits_check(&b->limits, true, e);
}

/* ---- on a worker ---- */

/* What it has, then a profile's, then those that are named. */
static int new_limits(const struct patching *p, struct store *s, struct sandbox *sb, struct err *e)
{
	struct profile profile = { .limits = sb->limits };

	if (p->body.profile[0]) {
		if (store_profile_get(s, p->body.profile, &profile, e) < 0)
			return -1;
		memcpy(sb->profile, profile.name, sizeof(sb->profile));
	}
	sb->limits = limits_fill(&p->body.limits, &profile.limits);
	return 0;
}

static int check_state(const struct patching *p, const struct sandbox *sb, struct err *e)
{
	if (sb->state == SANDBOX_GONE || sb->state == SANDBOX_DELETING)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s is %s", sb->id,
			       sandbox_state_name(sb->state));
	if (p->limits && lifecycle_deadline_ms(sb->state, 1) > 0)
		return err_set(e, ERR_BUSY, "sandbox %s is %s", sb->id,
			       sandbox_state_name(sb->state));
	return 0;
}

struct env_text {
	struct strv env;
};

static const struct json_field env_fields[] = { JSON_FIELD_MAP(env_text, env), JSON_FIELD_END };

/* The variable of "NAME=value" is one of these: "NAME", or "NAME=another". */
static bool is_among(const char *item, const struct strv *list)
{
	size_t len = strcspn(item, "=");

	for (size_t i = 0; i < list->len; i++)
		if (strcspn(list->items[i], "=") == len &&
		    strncmp(list->items[i], item, len) == 0)
			return true;
	return false;
}

/* Some variables of those the record has: with its version, so that no other change is lost. */
static int merge_env(struct patching *p, const char *now, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(SANDBOX_ENV_SIZE + 16);
	cleanup(strv_done) struct strv all = { 0 };
	struct env_text had = { 0 };
	int n;

	buf_addf(&text, "{\"env\":%s}", now[0] ? now : "{}");
	n = json_read(buf_str(&text), text.len, env_fields, &had, e);
	for (size_t i = 0; n == 0 && i < had.env.len; i++)
		if (!is_among(had.env.items[i], &p->body.set_env) &&
		    !is_among(had.env.items[i], &p->body.unset_env))
			strv_add(&all, had.env.items[i]);
	strv_done(&had.env);
	for (size_t i = 0; i < p->body.set_env.len; i++)
		strv_add(&all, p->body.set_env.items[i]);
	return n < 0 ? -1 : create_spec_env(&all, p->env, e);
}

/* One try, of the record as it is: its alarm depends on what is changed. */
static int patch_once(struct patching *p, struct store *s, struct err *e)
{
	struct transition c = { .reactor = p->rq->reactor };
	struct sandbox *sb = &c.sb;
	uint64_t sleep_after = (uint64_t)p->body.sleep_after_ms, deadline;
	uint64_t lifetime = (uint64_t)p->body.lifetime_ms;
	struct sandbox_patch patch = {
		.labels = p->body.has_labels ? p->labels : NULL,
		.env = p->body.has_env ? p->env : NULL,
		.sleep_after_ms = p->body.has_sleep ? &sleep_after : NULL,
		.lifetime_ms = p->body.has_lifetime ? &lifetime : NULL,
		.keep_alive = p->body.has_keep ? &p->body.keep_alive : NULL,
		.limits = &sb->limits,
		.profile = sb->profile,
	};

	if (store_sandbox_get(s, request_owner(p->rq), p->rq->param, sb, e) < 0)
		return -1;
	c.read_mono_ms = time_mono_ms();
	if (check_state(p, sb, e) < 0)
		return -1;
	p->was = *sb;
	if (some_env(p)) {
		if (merge_env(p, sb->env, e) < 0)
			return -1;
		patch.env = p->env;
	}
	if (p->body.has_sleep)
		sb->sleep_after_ms = sleep_after;
	if (p->body.has_keep)
		sb->keep_alive = p->body.keep_alive;
	if (p->body.has_lifetime)
		sb->expires_ms = lifetime ? moment_add(sb->read_ms, lifetime) : 0;
	if (p->limits) {
		if (new_limits(p, s, sb, e) < 0)
			return -1;
		patch.limits_pending = sb->state == SANDBOX_READY;
		patch.was = &p->was.limits;
		patch.host = sb->host;
		patch.room = &p->room;
	}
	deadline = transition_deadline_ms(&c, sb->state);
	patch.deadline_ms = lifecycle_deadline_ms(sb->state, 1) == 0 ? &deadline : NULL;
	patch.id = sb->id;
	patch.version = sb->version;
	return store_sandbox_patch(s, &patch, &p->sb, e);
}

static int patch(struct job *job, struct store *s, struct err *e)
{
	struct patching *p = container_of(job, struct patching, job);

	for (int i = 0; i < PATCH_TRIES; i++) {
		if (patch_once(p, s, e) == 0) {
			crash_point("life.patched");
			return 0;
		}
		if (e->code != ERR_CONFLICT)
			return -1;
	}
	return err_set(e, ERR_BUSY, "%s is being changed by other requests", p->rq->param);
}

/* berth-node refused, and has changed nothing: the record says again what holds. */
static int take_back(struct job *job, struct store *s, struct err *e)
{
	struct patching *p = container_of(job, struct patching, job);
	struct sandbox_patch back = {
		.id = p->sb.id,
		.version = p->sb.version,
		.limits = &p->was.limits,
		.profile = p->was.profile,
	};

	if (store_sandbox_patch(s, &back, &p->sb, e) < 0)
		return -1;
	crash_point("life.limits-taken-back");
	return store_sandbox_limits_done(s, p->sb.id, p->sb.version, &p->sb, e);
}

/* ---- and then ---- */

static void on_taken_back(struct job *job)
{
	struct patching *p = container_of(job, struct patching, job);

	if (!job->failed)
		sandbox_cache_put(p->rq->reactor->berthd->sandboxes, &p->sb);
	answer(p, &p->refusal);
}

static void on_in_force(void *data, const struct sandbox *sb, const struct err *why)
{
	struct patching *p = data;

	if (!why) {
		p->sb = *sb;
		return answer(p, NULL);
	}
	p->refusal = *why;
	if (why->code == ERR_BUSY) {
		/* berth-node was not asked, or we do not know what it did: it stays pending. */
		err_wrap(&p->refusal, "the limits are recorded and not in force yet");
		return answer(p, &p->refusal);
	}
	job_submit(p->rq->reactor, request_owner(p->rq), &p->job, take_back, on_taken_back);
}

static void on_patched(struct job *job)
{
	struct patching *p = container_of(job, struct patching, job);

	if (job->failed)
		return answer(p, &job->e);
	sandbox_cache_put(p->rq->reactor->berthd->sandboxes, &p->sb);
	if (p->limits && p->sb.limits_pending)
		return limits_enforce(p->rq->reactor, p->rq->id, &p->sb, on_in_force, p);
	answer(p, NULL);
}

static void on_room(void *data, const struct placement_host *room, const struct err *why)
{
	struct patching *p = data;
	struct err e;

	if (why)
		return answer(p, why);
	if (limits_fit(&p->body.limits, &room->most, &e) < 0)
		return answer(p, &e);
	p->room = *room;
	if (p->room.sandboxes_max < UINT32_MAX)
		p->room.sandboxes_max++; /* it is there already */
	job_submit(p->rq->reactor, request_owner(p->rq), &p->job, patch, on_patched);
}

void sandboxes_patch(struct request *rq)
{
	struct patching *p = xcalloc(1, sizeof(*p));
	struct err e;

	p->rq = rq;
	if (sandbox_id_check(rq->param, &e) < 0 || read_body(p, &e) < 0)
		return answer(p, &e);
	capacity_measure(rq->reactor, rq->id, on_room, p);
}

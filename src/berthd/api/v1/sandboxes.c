#include "berthd/api/v1/sandboxes.h"

#include <string.h>

#include "berthd/api/v1/create-body.h"
#include "berthd/api/v1/create-replay.h"
#include "berthd/control/create.h"
#include "berthd/control/deletion.h"
#include "berthd/control/limits.h"
#include "berthd/control/transition.h"
#include "berthd/control/wait-stable.h"
#include "berthd/front/forward.h"
#include "berthd/front/idempotency.h"
#include "berthd/front/place-create.h"
#include "berthd/runtime/berthd.h"
#include "http/target.h"
#include "lib/crash.h"
#include "lib/errno-map.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

#define LIST_DEFAULT  100
#define SELECTOR_SIZE 1024

/* What it lost; it stays when it was woken. */
static void failure_json(struct buf *out, const struct sandbox *sb)
{
	char when[TIME_TEXT_SIZE];

	if (sb->failed_ms == 0)
		return;
	time_text(sb->failed_ms, when);
	json_key(out, "last_failure");
	json_open(out, '{');
	json_str(out, "at", when);
	json_str(out, "why", sb->failed_why);
	json_str(out, "lost", sb->files_kept ? "processes and memory" : "everything");
	json_bool(out, "files_kept", sb->files_kept);
	buf_adds(out, "}");
}

static void guest_json(struct buf *out, const struct guest_versions *v)
{
	char version[GUEST_VERSION_SIZE];

	json_key(out, "guest");
	json_open(out, '{');
	json_str(out, "protocol", guest_version_text(v->guest, version));
	json_str(out, "status", guest_status_name(guest_compare(v->guest, v->host)));
	buf_adds(out, "}");
}

void sandbox_json(struct buf *out, const struct sandbox *sb)
{
	char when[TIME_TEXT_SIZE];

	time_text(sb->created_ms, when);
	json_open(out, '{');
	json_str(out, "id", sb->id);
	json_str(out, "state", sandbox_state_name(sb->state));
	json_str(out, "image", sb->image);
	json_str(out, "runtime", sb->runtime);
	json_str(out, "host", sb->host);
	json_int(out, "generation", (int64_t)sb->generation);
	limits_json(out, &sb->limits);
	json_bool(out, "limits_in_force", !sb->limits_pending);
	json_str(out, "created_at", when);
	json_str(out, "reason", sb->reason);
	failure_json(out, sb);
	json_str(out, "name", sb->name);
	json_str(out, "identity_key", sb->identity_key);
	json_str(out, "isolation", policy_isolation_name(sb->isolation));
	json_str(out, "profile", sb->profile);
	json_key(out, "labels");
	buf_adds(out, sb->labels);
	json_key(out, "env");
	buf_adds(out, sb->env);
	json_int(out, "sleep_after_ms", (int64_t)sb->sleep_after_ms);
	json_bool(out, "keep_alive", sb->keep_alive);
	when[0] = '\0';
	if (sb->expires_ms)
		time_text(sb->expires_ms, when);
	json_str(out, "expires_at", when);
	time_text(sb->last_used_ms, when);
	json_str(out, "last_used_at", when);
	json_key(out, "network");
	json_open(out, '{');
	json_str(out, "mode", sb->network_mode);
	buf_adds(out, "}");
	guest_json(out, &sb->guest);
	buf_adds(out, "}");
}

/* The one of this identity or name that is there: as it is, if it can be used. */
static void on_found(void *data, const struct sandbox *sb, const struct err *why)
{
	struct request *rq = data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct err e;

	if (why)
		return request_fail(rq, why);
	if (sb->state == SANDBOX_READY || sb->state == SANDBOX_ASLEEP) {
		sandbox_json(&body, sb);
		return request_reply(rq, 200, &body);
	}
	if (sb->state == SANDBOX_FAILED) {
		(void)sandbox_failed_error(sb, &e);
		err_wrap(&e, "this %s is taken", sb->name[0] ? "name" : "identity");
		return request_fail(rq, &e);
	}
	err_set(&e, ERR_CONFLICT, "%s, which has this %s, is %s%s%s", sb->id,
		sb->name[0] ? "name" : "identity", sandbox_state_name(sb->state),
		sb->reason[0] ? ": " : "", sb->reason);
	err_fix(&e, "Send the same request again: it makes a new one.");
	request_fail(rq, &e);
}

static void wait_for_found(struct transition *c)
{
	struct wait_stable how = {
		.reactor = c->reactor,
		.request = c->request,
		.sandbox = c->sb.id,
		.done = on_found,
		.data = c->data,
	};

	wait_stable_begin(&how);
}

/* Nothing was written, and another host may take it. A host may be older than the schema. */
static bool is_for_another_host(const struct transition *c, const struct err *why)
{
	bool begun = c->sb.version > 0;

	return c->full || (!begun && store_is_unwritable(why)) ||
	       (why->reason && (strcmp(why->reason, REASON_HOST_DRAINING) == 0 ||
				strcmp(why->reason, REASON_ENGINE_MISSING) == 0));
}

static void on_created(struct transition *c, const struct err *why)
{
	struct request *rq = c->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct idempotency_use use = c->use;
	bool used_before = c->used_before;
	struct err e;

	if (why) {
		bool elsewhere = is_for_another_host(c, why);

		e = *why;
		transition_free(c);
		if (used_before)
			return create_replay(rq, &use);
		if (elsewhere && rq->from_peer && rq->x)
			(void)!http_reply_header(rq->x, FORWARD_REFUSED, "1");
		return elsewhere && placing_refused(rq, &e) ? (void)0 : request_fail(rq, &e);
	}
	if (c->found) {
		wait_for_found(c);
		return transition_free(c);
	}
	if (c->sb.state == SANDBOX_FAILED || c->sb.state == SANDBOX_GONE) {
		err_set(&e, ERR_CONFLICT, "%s is %s by now%s%s", c->sb.id,
			sandbox_state_name(c->sb.state), c->sb.reason[0] ? ": " : "",
			c->sb.reason);
		transition_free(c);
		return request_fail(rq, &e);
	}
	sandbox_json(&body, &c->sb);
	transition_free(c);
	request_reply(rq, 201, &body);
	crash_point("life.create-answered");
}

/* In a cell the host was chosen by now, and may be another one than it was the first time. */
static int check_host(const struct berthd *b, const char *wanted, struct err *e)
{
	if (b->peers->secret[0] || !wanted[0] || strcmp(wanted, b->settings.host) == 0)
		return 0;
	err_set(e, ERR_NOT_FOUND, "no host %s: there is only %s here", wanted, b->settings.host);
	return err_fix(e, "Leave the host out; 'berth host ls' lists the hosts there are.");
}

static void create_here(struct request *rq)
{
	struct transition *c = transition_new(rq->reactor, rq->id);
	char random[ID_RANDOM_CHARS + 1];
	struct err e;

	if (create_body_read(rq, c, &e) < 0 || idempotency_read(rq, &c->use, &e) < 0 ||
	    check_host(rq->reactor->berthd, c->spec.host, &e) < 0) {
		transition_free(c);
		return request_fail(rq, &e);
	}
	id_random(random, ID_RANDOM_CHARS);
	sandbox_id_make(c->sb.id, rq->reactor->berthd->settings.cell, random);
	memcpy(c->sb.owner, rq->key.owner, sizeof(c->sb.owner));
	c->nowhere = placing_nowhere(rq);
	c->data = rq;
	control_create(c, on_created);
}

void sandboxes_create(struct request *rq)
{
	struct placing_ask ask;

	if (placing_is_open(rq) && create_body_where(rq, &ask))
		placing_begin(rq, &ask, create_here);
	else
		create_here(rq);
}

/* The page, and one more row than asked for tells whether there is a next one. */
struct listing {
	struct buf *out;
	uint64_t limit, count;
	char last[SANDBOX_ID_SIZE], next[SANDBOX_ID_SIZE];
};

static void list_row(const struct sandbox *sb, void *arg)
{
	struct listing *l = arg;

	if (l->count++ < l->limit) {
		sandbox_json(l->out, sb);
		memcpy(l->last, sb->id, sizeof(l->last));
	} else {
		memcpy(l->next, l->last, sizeof(l->next));
	}
}

int sandboxes_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = { .out = reply, .limit = LIST_DEFAULT };
	cleanup(selector_done) struct selector selector = { 0 };
	char after[SANDBOX_ID_SIZE] = "", limit[16], text[SELECTOR_SIZE], state[24] = "";
	struct sandbox_page page = { .owner = request_owner(rq), .after = after, .state = state };
	enum sandbox_state wanted;
	bool found;
	int unreadable;

	if (http_query(rq->query, "after", after, sizeof(after), &found, e) < 0)
		return err_wrap(e, "after");
	if (http_query(rq->query, "limit", limit, sizeof(limit), &found, e) < 0 ||
	    (found && str_u64(limit, &l.limit, e) < 0))
		return err_wrap(e, "limit");
	if (http_query(rq->query, "state", state, sizeof(state), &found, e) < 0 ||
	    (state[0] && !sandbox_state_by_name(state, &wanted)))
		return err_set(e, ERR_INVALID, "state: there is no state \"%.20s\"", state);
	if (http_query(rq->query, "selector", text, sizeof(text), &found, e) < 0)
		return err_wrap(e, "selector");
	if (found && selector_read(text, &selector, e) < 0)
		return -1;
	page.selector = found ? &selector : NULL;
	if (l.limit < 1 || l.limit >= STORE_LIST_MAX)
		return err_set(e, ERR_INVALID, "limit must be from 1 to %d", STORE_LIST_MAX - 1);
	page.limit = (uint32_t)l.limit + 1;
	json_open(reply, '{');
	json_key(reply, "sandboxes");
	json_open(reply, '[');
	unreadable = store_sandbox_list(s, &page, list_row, &l, e);
	if (unreadable < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", l.next);
	json_int(reply, "unreadable", unreadable); /* an alert of its host names it */
	buf_adds(reply, "}");
	return 0;
}

/* All that is left of one that is gone. */
void sandbox_gone_json(struct buf *out, const struct tombstone *t)
{
	json_open(out, '{');
	json_str(out, "id", t->id);
	json_str(out, "state", sandbox_state_name(SANDBOX_GONE));
	json_key(out, "receipt");
	buf_adds(out, t->receipt);
	buf_adds(out, "}");
}

int sandboxes_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	const char *owner = request_owner(rq);
	struct tombstone tomb;
	struct sandbox sb = { 0 };

	if (sandbox_id_check(rq->param, e) < 0 ||
	    store_sandbox_get(s, owner, rq->param, &sb, e) < 0)
		return -1;
	if (sb.state != SANDBOX_GONE) {
		sandbox_json(reply, &sb);
		return 0;
	}
	if (store_tombstone_get(s, owner, rq->param, &tomb, e) < 0)
		return -1;
	sandbox_gone_json(reply, &tomb);
	return 0;
}

void sandbox_deleting_json(struct buf *out, const struct sandbox *sb, const char *why)
{
	char next[TIME_TEXT_SIZE];

	time_text(stop_deadline_ms(&sb->stop), next);
	json_open(out, '{');
	json_str(out, "id", sb->id);
	json_str(out, "state", sandbox_state_name(sb->state));
	json_str(out, "reason", why);
	json_int(out, "attempts", sb->stop.attempts);
	json_str(out, "next_attempt_at", next);
	json_bool(out, "quarantined", sb->stop.state == STOP_QUARANTINED);
	buf_adds(out, "}");
}

static void on_deleted(struct transition *c, const struct err *why)
{
	struct request *rq = c->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct err e;
	bool pending = why && c->sb.state == SANDBOX_DELETING;

	if (why && !pending) {
		e = *why;
		transition_free(c);
		return request_fail(rq, &e);
	}
	if (pending)
		sandbox_deleting_json(&body, &c->sb, why->msg);
	else
		sandbox_gone_json(&body, &c->tomb);
	transition_free(c);
	request_reply(rq, pending ? 202 : 200, &body);
	crash_point("life.delete-answered");
}

static void begin_delete(struct request *rq)
{
	struct transition *c = transition_new(rq->reactor, rq->id);

	memcpy(c->sb.id, rq->param, sizeof(c->sb.id));
	c->owner = request_owner(rq);
	c->data = rq;
	deletion_ask(c, on_deleted);
}

void sandboxes_delete(struct request *rq)
{
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	idempotency_claim(rq, begin_delete, NULL);
}

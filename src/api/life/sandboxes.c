#include "api/life/sandboxes.h"

#include <string.h>

#include "api/berthd.h"
#include "api/cell/placing.h"
#include "api/life/change.h"
#include "api/life/deletion.h"
#include "api/life/idempotency.h"
#include "http/target.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

#define LIST_DEFAULT 100

static const struct json_field spec_fields[] = {
	JSON_FIELD_STR(sandbox_spec, image, .required = true),
	JSON_FIELD_STR(sandbox_spec, runtime),
	JSON_FIELD_STR(sandbox_spec, host),
	JSON_FIELD_INT(sandbox_spec, memory_mb),
	JSON_FIELD_INT(sandbox_spec, cpu_milli),
	JSON_FIELD_INT(sandbox_spec, pids),
	JSON_FIELD_INT(sandbox_spec, disk_mb),
	JSON_FIELD_END
};

void sandbox_json(struct buf *out, const struct sandbox *sb)
{
	char created[TIME_TEXT_SIZE];

	time_text(sb->created_ms, created);
	json_open(out, '{');
	json_str(out, "id", sb->id);
	json_str(out, "state", sandbox_state_name(sb->state));
	json_str(out, "image", sb->image);
	json_str(out, "runtime", sb->runtime);
	json_str(out, "host", sb->host);
	json_int(out, "generation", (int64_t)sb->generation);
	json_int(out, "memory_mb", sb->memory_mb);
	json_int(out, "cpu_milli", sb->cpu_milli);
	json_int(out, "pids", sb->pids);
	json_int(out, "disk_mb", sb->disk_mb);
	json_str(out, "created_at", created);
	json_str(out, "reason", sb->reason);
	buf_adds(out, "}");
}

static void on_created(struct change *c, const struct err *why)
{
	struct request *rq = c->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct idempotency_use use = c->use;
	bool used_before = c->used_before;
	struct err e;

	if (why) {
		e = *why;
		change_free(c);
		return used_before ? idempotency_replay(rq, &use) : request_fail(rq, &e);
	}
	sandbox_json(&body, &c->sb);
	change_free(c);
	request_reply(rq, 201, &body);
	crash_point("life.create-answered");
}

static int read_spec(struct request *rq, struct sandbox_spec *spec, struct err *e)
{
	*spec = SANDBOX_SPEC_DEFAULT;
	if (json_read(buf_str(&rq->body), rq->body.len, spec_fields, spec, e) < 0)
		return -1;
	if (!spec->runtime[0])
		memcpy(spec->runtime, rq->reactor->berthd->settings.default_runtime,
		       sizeof(spec->runtime));
	return sandbox_spec_check(spec, e);
}

static void create_here(struct request *rq)
{
	struct change *c = change_new(rq->reactor, rq->id);
	char random[ID_RANDOM_CHARS + 1];
	struct err e;

	if (read_spec(rq, &c->spec, &e) < 0 || idempotency_read(rq, &c->use, &e) < 0) {
		change_free(c);
		return request_fail(rq, &e);
	}
	id_random(random, ID_RANDOM_CHARS);
	sandbox_id_make(c->sb.id, rq->reactor->berthd->settings.cell, random);
	memcpy(c->sb.owner, rq->key.owner, sizeof(c->sb.owner));
	c->data = rq;
	change_create(c, on_created);
}

void sandboxes_create(struct request *rq)
{
	placing_begin(rq, create_here);
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
	char after[SANDBOX_ID_SIZE] = "", limit[16];
	struct sandbox_page page = { .owner = request_owner(rq), .after = after };
	bool found;

	if (http_query(rq->query, "after", after, sizeof(after), &found, e) < 0)
		return err_wrap(e, "after");
	if (http_query(rq->query, "limit", limit, sizeof(limit), &found, e) < 0 ||
	    (found && str_u64(limit, &l.limit, e) < 0))
		return err_wrap(e, "limit");
	if (l.limit < 1 || l.limit >= STORE_LIST_MAX)
		return err_set(e, ERR_INVALID, "limit must be from 1 to %d", STORE_LIST_MAX - 1);
	page.limit = (uint32_t)l.limit + 1;
	json_open(reply, '{');
	json_key(reply, "sandboxes");
	json_open(reply, '[');
	if (store_sandbox_list(s, &page, list_row, &l, e) < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", l.next);
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
	struct sandbox sb;

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

static void deleting_json(struct buf *out, const struct sandbox *sb, const char *why)
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

static void on_deleted(struct change *c, const struct err *why)
{
	struct request *rq = c->data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct err e;
	bool pending = why && c->sb.state == SANDBOX_DELETING;

	if (why && !pending) {
		e = *why;
		change_free(c);
		return request_fail(rq, &e);
	}
	if (pending)
		deleting_json(&body, &c->sb, why->msg);
	else
		sandbox_gone_json(&body, &c->tomb);
	change_free(c);
	request_reply(rq, pending ? 202 : 200, &body);
	crash_point("life.delete-answered");
}

static void begin_delete(struct request *rq)
{
	struct change *c = change_new(rq->reactor, rq->id);

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
	idempotency_claim(rq, begin_delete);
}

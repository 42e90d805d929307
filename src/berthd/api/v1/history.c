#include "berthd/api/v1/history.h"

#include "berthd/api/v1/sandboxes.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox-event.h"

static int no_receipt(const struct sandbox *sb, struct err *e)
{
	char when[TIME_TEXT_SIZE];

	if (sb->state != SANDBOX_DELETING)
		return err_set(e, ERR_NOT_FOUND, "%s is %s: there is no receipt", sb->id,
			       sandbox_state_name(sb->state));
	time_text(stop_deadline_ms(&sb->stop), when);
	return err_set(e, ERR_NOT_FOUND, "%s is not proven gone yet: attempt %u of %d, %s at %s",
		       sb->id, sb->stop.attempts, STOP_ATTEMPTS,
		       sb->stop.state == STOP_QUARANTINED ? "quarantined and looked at again"
							  : "tried next",
		       when);
}

int history_receipt(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	const char *owner = request_owner(rq);
	struct tombstone tomb;
	struct sandbox sb;

	if (sandbox_id_check(rq->param, e) < 0 ||
	    store_sandbox_get(s, owner, rq->param, &sb, e) < 0)
		return -1;
	if (sb.state != SANDBOX_GONE)
		return no_receipt(&sb, e);
	if (store_tombstone_get(s, owner, rq->param, &tomb, e) < 0)
		return -1;
	sandbox_gone_json(reply, &tomb);
	return 0;
}

static void event_row(const struct sandbox_happening *h, void *arg)
{
	struct buf *out = arg;
	char at[TIME_TEXT_SIZE];

	time_text(h->at_ms, at);
	json_open(out, '{');
	json_int(out, "seq", (int64_t)h->seq);
	json_str(out, "at", at);
	json_str(out, "event", h->event);
	json_str(out, "from", h->from_state);
	json_str(out, "to", h->to_state);
	json_str(out, "reason", h->reason);
	json_int(out, "attempt", (int64_t)h->attempt);
	buf_adds(out, "}");
}

int history_events(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct sandbox sb;
	uint64_t after;

	if (request_after(rq, &after, e) < 0 || sandbox_id_check(rq->param, e) < 0 ||
	    store_sandbox_get(s, request_owner(rq), rq->param, &sb, e) < 0)
		return -1; /* also asks whose it is */
	json_open(reply, '{');
	json_key(reply, "events");
	json_open(reply, '[');
	if (store_sandbox_events(s, rq->param, after, event_row, reply, e) < 0)
		return -1;
	buf_adds(reply, "]}");
	return 0;
}

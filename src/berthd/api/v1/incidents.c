#include "berthd/api/v1/incidents.h"

#include "berthd/api/v1/unreadable.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/incident.h"

static void list_row(uint64_t id, const struct incident *one, void *arg)
{
	struct buf *out = arg;
	char at[TIME_TEXT_SIZE];

	json_open(out, '{');
	json_int(out, "id", (int64_t)id);
	json_str(out, "kind", one->kind);
	json_str(out, "source", one->source);
	json_str(out, "sandbox", one->sandbox);
	json_str(out, "detail", one->detail);
	json_int(out, "count", (int64_t)one->count);
	time_text(one->first_ms, at);
	json_str(out, "first_at", at);
	time_text(one->last_ms, at);
	json_str(out, "last_at", at);
	buf_adds(out, "}");
}

int incidents_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	uint64_t before = 0;
	char text[24];
	bool found;
	int unreadable;

	if (http_query(rq->query, "before", text, sizeof(text), &found, e) < 0 ||
	    (found && str_u64(text, &before, e) < 0))
		return err_wrap(e, "before");
	if (before > INT64_MAX) /* the database's numbers end there */
		return err_set(e, ERR_INVALID, "before: too large");
	json_open(reply, '{');
	json_key(reply, "incidents");
	json_open(reply, '[');
	unreadable = store_incident_list(s, before, list_row, reply, e);
	if (unreadable < 0)
		return -1;
	buf_adds(reply, "]");
	unreadable_json(reply, "incidents", unreadable, e);
	buf_adds(reply, "}");
	return 0;
}

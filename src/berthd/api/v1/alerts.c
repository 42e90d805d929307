#include "berthd/api/v1/alerts.h"

#include <string.h>

#include "berthd/api/v1/unreadable.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/alert.h"

static void alert_json(struct buf *out, const struct alert *a)
{
	char when[TIME_TEXT_SIZE];

	json_open(out, '{');
	json_int(out, "id", (int64_t)a->id);
	json_str(out, "level", "critical");
	json_str(out, "kind", a->kind);
	json_str(out, "sandbox", a->sandbox);
	json_str(out, "subject", a->subject);
	json_str(out, "host", a->host);
	json_str(out, "message", a->message);
	time_text(a->raised_ms, when);
	json_str(out, "raised_at", when);
	when[0] = '\0';
	if (a->ended_ms)
		time_text(a->ended_ms, when);
	json_str(out, "ended_at", when);
	buf_adds(out, "}");
}

/* The page, and one more row than asked for tells whether there is a next one. */
struct listing {
	struct buf *out;
	uint32_t left;
	uint64_t last;
	bool more;
};

static void list_row(const struct alert *a, void *arg)
{
	struct listing *l = arg;

	l->more = l->left == 0;
	if (l->more)
		return;
	l->left--;
	l->last = a->id;
	alert_json(l->out, a);
}

#define PAGE 100

int alerts_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct alert_page page = { .owner = request_owner(rq), .limit = PAGE + 1 };
	struct listing l = { .out = reply, .left = PAGE };
	char before[24], ended[8];
	bool found;
	int unreadable;

	if (http_query(rq->query, "before", before, sizeof(before), &found, e) < 0 ||
	    (found && str_u64(before, &page.before, e) < 0) ||
	    http_query(rq->query, "ended", ended, sizeof(ended), &found, e) < 0)
		return -1;
	page.ended = found && strcmp(ended, "1") == 0;
	json_open(reply, '{');
	json_key(reply, "alerts");
	json_open(reply, '[');
	unreadable = store_alert_list(s, &page, list_row, &l, e);
	if (unreadable < 0)
		return -1;
	buf_adds(reply, "]");
	json_int(reply, "next", l.more ? (int64_t)l.last : 0);
	unreadable_json(reply, "alerts", unreadable, e);
	buf_adds(reply, "}");
	return 0;
}

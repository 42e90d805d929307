#include "berthd/api/v1/events.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

/*
 * A follower is kept small: ten thousand of them wait most of the time. The
 * request itself is given back at once.
 */
struct follower {
	struct http_exchange *x;
	struct reactor *reactor;
	bool all;      /* an admin's */
	bool full;     /* its queue is: until it drains events are counted, not sent */
	uint32_t lost; /* the count */
	char owner[SANDBOX_OWNER_SIZE];
	struct follower *prev, *next;
};

static void unlink_follower(struct follower *f)
{
	if (f->prev)
		f->prev->next = f->next;
	else
		f->reactor->followers = f->next;
	if (f->next)
		f->next->prev = f->prev;
	free(f);
}

static void on_follower_gone(struct http_exchange *x)
{
	unlink_follower(x->data);
}

static void on_heartbeat(uv_timer_t *timer)
{
	struct reactor *r = timer->data;

	for (struct follower *f = r->followers; f; f = f->next)
		if (!f->full)
			f->full = http_stream_data(f->x, ": here\n\n", 8);
}

/* What a follower reads is complete, or says where it is not and by how much. */
static void on_follower_drained(struct http_exchange *x)
{
	struct follower *f = x->data;
	cleanup(buf_done) struct buf text = buf_make(256);
	char now[TIME_TEXT_SIZE];

	f->full = false;
	if (!f->lost)
		return;
	time_text(time_wall_ms(), now);
	buf_adds(&text, "event: gap\ndata: {");
	json_str(&text, "at", now);
	json_int(&text, "events", f->lost);
	buf_adds(&text, "}\n\n");
	f->lost = 0;
	f->full = http_stream_data(x, text.data, text.len);
}

static void tell_follower(struct follower *f, const struct buf *text)
{
	if (f->full)
		f->lost++;
	else
		f->full = http_stream_data(f->x, text->data, text->len);
}

void events_begin(struct reactor *r)
{
	uv_timer_init(&r->loop, &r->heartbeat);
	r->heartbeat.data = r;
	uv_timer_start(&r->heartbeat, on_heartbeat, FOLLOWERS_HEARTBEAT_MS,
		       FOLLOWERS_HEARTBEAT_MS);
}

void events_end(struct reactor *r)
{
	struct follower *next;

	for (struct follower *f = r->followers; f; f = next) {
		next = f->next;
		http_stream_end(f->x);
		free(f);
	}
	r->followers = NULL;
}

void events_close(struct reactor *r)
{
	uv_close((uv_handle_t *)&r->heartbeat, NULL);
}

void events_follow(struct request *rq)
{
	struct follower *f = xcalloc(1, sizeof(*f));
	struct reactor *r = rq->reactor;
	struct http_exchange *x = rq->x;

	memcpy(f->owner, rq->key.owner, sizeof(f->owner));
	f->all = rq->key.role == ROLE_ADMIN;
	f->x = x;
	f->reactor = r;
	f->next = r->followers;
	if (f->next)
		f->next->prev = f;
	r->followers = f;
	x->data = f;
	x->on_gone = on_follower_gone;
	x->on_drain = on_follower_drained;
	http_stream_begin(x, 200, "text/event-stream");
	f->full = http_stream_data(x, ": following\n\n", 13);
	request_end(rq, 200);
}

void events_tell(struct reactor *r, const struct bus_event *event)
{
	cleanup(buf_done) struct buf text = buf_make(4096 + 64);

	buf_addf(&text, "event: %s\ndata: %s\n\n", event->name, event->json);
	for (struct follower *f = r->followers; f; f = f->next)
		if (f->all || strcmp(f->owner, event->owner) == 0)
			tell_follower(f, &text);
}

#include "berthd/api/v1/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/api/v1/event-ring.h"
#include "berthd/runtime/berthd.h"
#include "http/target.h"
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
	bool all;       /* an admin's */
	bool full;      /* its queue is: until it drains events are counted, not sent */
	uint32_t lost;  /* the count */
	uint64_t after; /* it has seen those up to this number */
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

/* What a follower reads is complete, or says where it is not, and by how much if that is known. */
static void tell_gap(struct follower *f)
{
	cleanup(buf_done) struct buf text = buf_make(256);
	char now[TIME_TEXT_SIZE];

	time_text(time_wall_ms(), now);
	buf_adds(&text, "event: gap\ndata: {");
	json_str(&text, "at", now);
	if (f->lost)
		json_int(&text, "events", f->lost);
	buf_adds(&text, "}\n\n");
	f->lost = 0;
	f->full = http_stream_data(f->x, text.data, text.len);
}

static void on_follower_drained(struct http_exchange *x)
{
	struct follower *f = x->data;

	f->full = false;
	if (f->lost)
		tell_gap(f);
}

static void tell_follower(struct follower *f, const char *owner, const char *text)
{
	if (!f->all && strcmp(f->owner, owner) != 0)
		return;
	if (f->full)
		f->lost++;
	else
		f->full = http_stream_data(f->x, text, strlen(text));
}

void events_begin(struct reactor *r)
{
	r->events = xcalloc(1, sizeof(*r->events));
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
	event_ring_done(r->events);
	free(take_ptr(r->events));
}

/* The last event it has seen: what a browser sends by itself, or the query. False: none. */
static int read_after(const struct request *rq, struct event_id *ret, bool *found, struct err *e)
{
	const char *again = http_header(rq->x, "Last-Event-ID");
	char text[64];

	*found = again != NULL;
	if (!again && http_query(rq->query, "after", text, sizeof(text), found, e) < 0)
		return -1;
	return *found ? event_id_read(again ? again : text, ret, e) : 0;
}

/* What it missed, as far as it is there. Of another run of berthd nothing is. */
static void catch_up(struct follower *f, const struct event_id *seen)
{
	const struct reactor *r = f->reactor;
	const struct event_ring *ring = r->events;

	if (seen->run != r->berthd->bus.run)
		return tell_gap(f);
	f->after = seen->number;
	if (event_ring_gap(ring, f->all ? NULL : f->owner, seen->number))
		tell_gap(f);
	for (size_t i = event_ring_after(ring, seen->number); i < ring->count; i++)
		tell_follower(f, ring->kept[i].owner, ring->kept[i].text);
}

void events_follow(struct request *rq)
{
	struct reactor *r = rq->reactor;
	struct http_exchange *x = rq->x;
	struct event_id seen;
	struct follower *f;
	bool resumed;
	struct err e;

	if (read_after(rq, &seen, &resumed, &e) < 0)
		return request_fail(rq, &e);
	f = xcalloc(1, sizeof(*f));
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
	if (resumed)
		catch_up(f, &seen);
	request_end(rq, 200);
}

void events_tell(struct reactor *r, const struct bus_event *event)
{
	cleanup(buf_done) struct buf text = buf_make(4096 + 64);

	buf_addf(&text, "id: %" PRIu64 "-%" PRIu64 "\nevent: %s\ndata: %s\n\n",
		 r->berthd->bus.run, event->number, event->name, event->json);
	event_ring_put(r->events, event->number, event->owner, &text);
	for (struct follower *f = r->followers; f; f = f->next)
		if (event->number > f->after)
			tell_follower(f, event->owner, buf_str(&text));
}

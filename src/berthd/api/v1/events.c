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

/* What happened, on its way to one reactor. */
struct happening {
	struct job job;
	char owner[SANDBOX_OWNER_SIZE];
	struct buf text; /* the whole event, ready to be sent */
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

static void on_happening(struct job *job)
{
	struct happening *h = container_of(job, struct happening, job);

	for (struct follower *f = job->reactor->followers; f; f = f->next)
		if (f->all || strcmp(f->owner, h->owner) == 0)
			tell_follower(f, &h->text);
	buf_done(&h->text);
	free(h);
}

void events_tell(struct berthd *b, const char *owner, const char *name, const struct buf *json)
{
	for (size_t i = 0; i < b->reactor_count; i++) {
		struct happening *h = xcalloc(1, sizeof(*h));

		h->job = (struct job){ .reactor = &b->reactors[i], .done = on_happening };
		(void)!str_copy(h->owner, sizeof(h->owner), owner);
		h->text = buf_make(4096);
		buf_addf(&h->text, "event: %s\ndata: %s\n\n", name, buf_str(json));
		reactor_post(&b->reactors[i], &h->job);
	}
}

void events_publish(struct berthd *b, const struct sandbox *sb)
{
	cleanup(buf_done) struct buf json = buf_make(4096);
	char now[TIME_TEXT_SIZE];

	time_text(time_wall_ms(), now);
	buf_adds(&json, "{");
	json_str(&json, "at", now);
	json_str(&json, "id", sb->id);
	json_str(&json, "state", sandbox_state_name(sb->state));
	json_str(&json, "reason", sb->reason);
	buf_adds(&json, "}");
	events_tell(b, sb->owner, "sandbox", &json);
}

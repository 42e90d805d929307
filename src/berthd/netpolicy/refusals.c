#include "berthd/netpolicy/refusals.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "berthd/runtime/bus.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/network.h"
#include "store/sandbox.h"

#define BATCH_MAX 1000
#define AGAIN_MS  1000 /* while the database is away */

struct batch {
	struct job job;
	struct refusals *refusals;
	size_t count, written, lost;
	struct security_event rows[BATCH_MAX];
};

struct refusals {
	struct reactor *reactor;
	refusals_owner_fn *owner_of;
	struct batch *next; /* being filled; NULL: nothing came */
	struct batch *late; /* the database was away */
	uint64_t tried_ms;
	bool writing;
};

void refusal_json(struct buf *out, const struct security_event *ev)
{
	char at[TIME_TEXT_SIZE];

	time_text(ev->at_ms, at);
	json_open(out, '{');
	json_str(out, "at", at);
	json_str(out, "sandbox", ev->sandbox_id);
	json_str(out, "kind", ev->kind);
	json_str(out, "name", ev->name);
	json_int(out, "port", (int64_t)ev->port);
	json_str(out, "rule", ev->rule);
	json_int(out, "count", (int64_t)ev->count);
	if (ev->id)
		json_int(out, "seq", (int64_t)ev->id);
	buf_adds(out, "}");
}

static void publish(struct refusals *s, const struct security_event *ev)
{
	struct berthd *b = s->reactor->berthd;
	cleanup(buf_done) struct buf json = buf_make(4096);
	char owner[SANDBOX_OWNER_SIZE];

	if (!s->owner_of(b, ev->sandbox_id, owner))
		return;
	refusal_json(&json, ev);
	bus_publish(b, &(struct bus_event){ .name = "security",
					    .owner = owner,
					    .json = buf_str(&json) });
}

/* What a box says goes into our records: only what can be read there. */
static void plain(char *text)
{
	for (char *p = text; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			*p = '?';
}

void refusals_take(struct refusals *s, const struct egress_event *ev)
{
	struct security_event *row;

	if (!s->next)
		s->next = xcalloc(1, sizeof(*s->next));
	if (s->next->count == BATCH_MAX) {
		s->next->lost++;
		return;
	}
	row = &s->next->rows[s->next->count++];
	*row = (struct security_event){ .at_ms = ev->at_ms, .port = ev->port, .count = ev->count };
	(void)!str_copy(row->sandbox_id, sizeof(row->sandbox_id), ev->sandbox);
	memcpy(row->kind, ev->kind, sizeof(row->kind));
	memcpy(row->name, ev->name, sizeof(row->name));
	memcpy(row->rule, ev->rule, sizeof(row->rule));
	plain(row->name);
	plain(row->rule);
	log_event(LOG_INFO, "egress refused", "sandbox", row->sandbox_id, "kind", row->kind, "name",
		  row->name, "rule", row->rule, NULL);
	publish(s, row);
}

static int write_batch(struct job *job, struct store *st, struct err *e)
{
	struct batch *b = container_of(job, struct batch, job);
	const char *last = "";

	for (; b->written < b->count; b->written++)
		if (store_security_add(st, &b->rows[b->written], e) < 0)
			return -1;
	for (size_t i = 0; i < b->count; i++) { /* those of one box come one after another */
		if (strcmp(last, b->rows[i].sandbox_id) == 0)
			continue;
		last = b->rows[i].sandbox_id;
		if (store_security_trim(st, last, e) < 0)
			return -1;
	}
	return 0;
}

static void on_written(struct job *job)
{
	cleanup(free_ptr) struct batch *b = container_of(job, struct batch, job);
	struct refusals *s = b->refusals;

	s->writing = false;
	if (job->failed && job->e.code == ERR_BUSY)
		s->late = take_ptr(b);
	else if (job->failed || b->lost)
		log_event(LOG_WARN, "not every refusal is written down", "why",
			  job->failed ? job->e.msg : "there were too many", NULL);
}

void refusals_flush(struct refusals *s)
{
	struct batch *b;

	if (s->writing || (!s->late && !s->next) ||
	    (s->late && time_mono_ms() - s->tried_ms < AGAIN_MS))
		return;
	b = s->late ? take_ptr(s->late) : take_ptr(s->next);
	b->refusals = s;
	s->tried_ms = time_mono_ms();
	s->writing = true;
	job_submit(s->reactor, NULL, &b->job, write_batch, on_written);
}

struct refusals *refusals_new(struct reactor *r, refusals_owner_fn *owner_of)
{
	struct refusals *s = xcalloc(1, sizeof(*s));

	s->reactor = r;
	s->owner_of = owner_of;
	return s;
}

void refusals_free(struct refusals *s)
{
	free(s->next);
	free(s->late);
	free(s);
}

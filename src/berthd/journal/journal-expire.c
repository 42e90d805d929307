#include "berthd/journal/journal-expire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "lib/time.h"

#define LOOK_MS  1000
#define EVERY_MS 60000
#define PART     16        /* or as soon as a part of the limit is new */
#define MUCH     (1 << 20) /* less is not worth to lose what a terminal shows */

/* ---- what to remove ---- */

struct one {
	char sandbox[SANDBOX_ID_SIZE], id[EXEC_ID_SIZE];
	size_t owner; /* its place in all.owners */
	uint64_t bytes;
	struct timespec changed;
};

/* What one owner has, and how far its journals were looked through, from the oldest on. */
struct share {
	char name[SANDBOX_OWNER_SIZE];
	uint64_t bytes;
	size_t next;
	bool through; /* nothing of it can be removed any more */
};

struct all {
	struct journals *js;
	struct one *items;
	size_t count;
	uint64_t bytes;
	struct share *owners;
	size_t owner_count;
};

static size_t share_of(struct all *a, const char *name)
{
	for (size_t i = 0; i < a->owner_count; i++)
		if (strcmp(a->owners[i].name, name) == 0)
			return i;
	a->owners = xrealloc(a->owners, (a->owner_count + 1) * sizeof(*a->owners));
	a->owners[a->owner_count] = (struct share){ 0 };
	snprintf(a->owners[a->owner_count].name, SANDBOX_OWNER_SIZE, "%s", name);
	return a->owner_count++;
}

static size_t owner_of(struct all *a, const struct one *o)
{
	struct journal *j;
	struct err ignored;
	size_t found;

	if (journal_find(a->js, o->sandbox, o->id, &j, &ignored) < 0)
		return share_of(a, ""); /* it cannot be read, and so is not removed */
	found = share_of(a, j->head.owner);
	journal_unref(j);
	return found;
}

/* A sandbox has one owner, and its journals come one after the other: one of them is read. */
static void find_owners(struct all *a)
{
	for (size_t i = 0; i < a->count; i++) {
		struct one *o = &a->items[i];
		bool same = i > 0 && strcmp(o[-1].sandbox, o->sandbox) == 0 &&
			    a->owners[o[-1].owner].name[0];

		o->owner = same ? o[-1].owner : owner_of(a, o);
		a->owners[o->owner].bytes += o->bytes;
	}
}

static int add_one(void *data, const char *sandbox, const char *id)
{
	struct all *a = data;
	char name[SANDBOX_ID_SIZE + EXEC_ID_SIZE];
	struct stat st;
	struct one *o;

	snprintf(name, sizeof(name), "%s/%s", sandbox, id);
	if (fstatat(a->js->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if ((a->count & (a->count - 1)) == 0)
		a->items = xrealloc(a->items, (a->count ? 2 * a->count : 1) * sizeof(*a->items));
	o = &a->items[a->count++];
	*o = (struct one){
		.bytes = (uint64_t)st.st_blocks * 512,
		.changed = st.st_mtim,
	};
	snprintf(o->sandbox, sizeof(o->sandbox), "%s", sandbox);
	snprintf(o->id, sizeof(o->id), "%s", id);
	a->bytes += o->bytes;
	return 0;
}

static int by_age(const void *left, const void *right)
{
	const struct timespec *a = &((const struct one *)left)->changed;
	const struct timespec *b = &((const struct one *)right)->changed;

	if (a->tv_sec != b->tv_sec)
		return a->tv_sec < b->tv_sec ? -1 : 1;
	return (a->tv_nsec > b->tv_nsec) - (a->tv_nsec < b->tv_nsec);
}

static bool remove_ended(struct journals *js, const struct one *o)
{
	struct journal_view v;
	struct journal *j;
	struct err ignored;
	bool over;

	if (journal_find(js, o->sandbox, o->id, &j, &ignored) < 0)
		return false;
	journal_look(j, &v);
	over = v.slot.state == JOURNAL_SETTLED && !journal_is_doubt(j);
	if (over)
		journal_remove(j);
	journal_unref(j);
	return over;
}

static int by_bytes(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

/*
 * How much an owner has for sure: with all that hold more cut down to it, everything would fit.
 * What others run cannot be removed, and costs no owner this.
 */
static uint64_t fair_share(const struct all *a, uint64_t limit)
{
	uint64_t *held = xcalloc(a->owner_count + 1, sizeof(*held)), share = UINT64_MAX;

	for (size_t i = 0; i < a->owner_count; i++)
		held[i] = a->owners[i].bytes;
	qsort(held, a->owner_count, sizeof(*held), by_bytes);
	for (size_t i = 0; i < a->owner_count && share == UINT64_MAX; i++) {
		if (held[i] > limit / (a->owner_count - i))
			share = limit / (a->owner_count - i);
		limit -= share == UINT64_MAX ? held[i] : 0;
	}
	free(held);
	return share;
}

/* The one that holds most, and more than this, of which something may still be removed. */
static struct share *largest(struct all *a, uint64_t share)
{
	struct share *most = NULL;

	for (size_t i = 0; i < a->owner_count; i++)
		if (!a->owners[i].through && a->owners[i].bytes > (most ? most->bytes : share))
			most = &a->owners[i];
	return most;
}

/* Its oldest that has ended. */
static bool remove_oldest(struct all *a, struct share *of)
{
	size_t owner = (size_t)(of - a->owners);

	for (; of->next < a->count; of->next++) {
		const struct one *o = &a->items[of->next];

		if (o->owner != owner || !remove_ended(a->js, o))
			continue;
		a->bytes -= o->bytes;
		of->bytes -= o->bytes;
		of->next++;
		return true;
	}
	of->through = true;
	return false;
}

/* One that runs, or has ended a moment ago, and holds much records no more. */
static void stop_one(struct journals *js, const struct one *o)
{
	struct journal *j;
	struct err ignored;

	if (o->bytes < MUCH || journal_find(js, o->sandbox, o->id, &j, &ignored) < 0)
		return;
	atomic_store(&j->over_at, atomic_load(&js->trims) + 1);
	journal_unref(j);
}

/* Nothing more could be removed, and it is still too much. */
static void stop_those_past(const struct all *a, uint64_t share)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->owners[a->items[i].owner].bytes > share)
			stop_one(a->js, &a->items[i]);
}

/* The owners that hold most make room, down to what each has for sure. */
size_t journals_trim(struct journals *js, uint64_t limit)
{
	struct all a = { .js = js };
	struct share *of;
	uint64_t share = 0;
	size_t removed = 0;

	atomic_store(&js->grown, 0);
	journals_each(js, NULL, add_one, &a);
	if (a.bytes > limit) {
		find_owners(&a);
		qsort(a.items, a.count, sizeof(*a.items), by_age);
		share = fair_share(&a, limit);
	}
	while (a.bytes > limit && (of = largest(&a, share)))
		removed += remove_oldest(&a, of);
	if (a.bytes > limit)
		stop_those_past(&a, share);
	atomic_fetch_add(&js->trims, 1); /* what an earlier one found, and this one not, is over */
	free(a.items);
	free(a.owners);
	return removed;
}

/* ---- when ---- */

bool journals_trim_due(uint64_t ms, uint64_t grown, uint64_t limit)
{
	return ms >= EVERY_MS || grown > limit / PART;
}

struct journal_expire {
	struct reactor *reactor;
	uv_timer_t timer;
	uint64_t last_ms;
	struct job job;
	size_t removed;
	bool working;
};

static int run(struct job *job, struct store *s, struct err *e)
{
	struct journal_expire *t = container_of(job, struct journal_expire, job);
	struct berthd *b = t->reactor->berthd;

	(void)s;
	(void)e;
	t->removed = journals_trim(b->journals, b->settings.journal_host_bytes);
	return 0;
}

static void on_done(struct job *job)
{
	struct journal_expire *t = container_of(job, struct journal_expire, job);
	char count[24];

	t->working = false;
	if (t->removed == 0)
		return;
	snprintf(count, sizeof(count), "%zu", t->removed);
	log_event(LOG_INFO, "old journals were removed", "execs", count, NULL);
}

static void on_time(uv_timer_t *timer)
{
	struct journal_expire *t = timer->data;

	const struct berthd *b = t->reactor->berthd;
	uint64_t now = time_mono_ms();

	if (t->working || !journals_trim_due(now - t->last_ms, atomic_load(&b->journals->grown),
					     b->settings.journal_host_bytes))
		return;
	t->working = true;
	t->last_ms = now;
	job_submit_background(t->reactor, &t->job, run, on_done);
}

struct journal_expire *journal_expire_begin(struct reactor *r)
{
	struct journal_expire *t = xcalloc(1, sizeof(*t));

	t->reactor = r;
	uv_timer_init(&r->loop, &t->timer);
	t->timer.data = t;
	t->last_ms = time_mono_ms();
	uv_timer_start(&t->timer, on_time, LOOK_MS, LOOK_MS);
	return t;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void journal_expire_end(struct journal_expire *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->timer, on_closed);
}

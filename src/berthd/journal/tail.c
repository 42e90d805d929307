#include "berthd/journal/tail.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berthd/runtime/berthd.h"

#define BLOCK     ((size_t)256 * 1024) /* read from the file at once */
#define BLOCK_MIN ((size_t)32 * 1024)  /* the same for a client that takes little at once */
#define RUN_MAX   (8 * BLOCK)          /* of all tails, before requests have their turn */
#define GAP_STEP  (1U << 20)           /* a gap that still grows is told in steps */

struct tail *tail_new(struct reactor *r, const struct tail_events *events, void *data)
{
	struct tail *t = xcalloc(1, sizeof(*t));

	t->reactor = r;
	t->events = events;
	t->data = data;
	t->ahead = BLOCK;
	return t;
}

static uint32_t bit_of(const struct reactor *r)
{
	return 1U << (r - r->berthd->reactors);
}

static void list(struct tail *t)
{
	if (t->listed)
		return;
	t->listed = true;
	t->next = t->reactor->tails;
	t->reactor->tails = t;
}

void tail_follow(struct tail *t, struct journal *j, uint64_t from)
{
	struct reactor *loop;

	t->journal = journal_ref(j);
	t->counted = true;
	atomic_fetch_add(&j->readers, 1);
	t->from = from;
	t->at = j->frames_at;
	if (from == UINT64_MAX)
		t->blind = true;
	list(t);
	uv_async_send(&t->reactor->wake);
	loop = journal_loop(j);
	if (loop && loop != t->reactor) /* its exec may wait for a reader: tell_readers() */
		uv_async_send(&loop->wake);
}

void tail_resume(struct tail *t)
{
	struct journal_glance v;

	t->full = t->quiet = false;
	if (!t->journal || t->closed)
		return;
	journal_glance(t->journal, &v);
	if (t->exec && t->at == v.written) {
		t->caught_up(t->exec);
		return;
	}
	list(t);
	uv_async_send(&t->reactor->wake);
}

static void tail_free(struct tail *t)
{
	if (t->counted)
		atomic_fetch_sub(&t->journal->readers, 1);
	journal_unref(t->journal);
	free(t);
}

/* One that is in the list is freed by the next walk along it. */
void tail_close(struct tail *t)
{
	t->closed = true;
	t->exec = NULL;
	if (t->listed) {
		uv_async_send(&t->reactor->wake);
		return;
	}
	tail_free(t);
}

/* ---- what is in the file ---- */

static bool pass_on(struct tail *t, uint8_t *data, size_t len)
{
	enum frame_type type = t->stream ? FRAME_STDERR : FRAME_STDOUT;
	uint64_t before = t->from > t->position ? t->from - t->position : 0;
	size_t skip = before < len ? (size_t)before : len;
	bool full = false;

	t->position += skip;
	t->offset[t->stream] += skip;
	if (len > skip)
		full = t->events->output && t->events->output(t, type, data + skip, len - skip);
	t->position += len - skip;
	t->offset[t->stream] += len - skip;
	t->left -= (uint32_t)len;
	t->at += len;
	return full;
}

/* Frames, or parts of them, in `len` bytes from t->at on. How many were used; 0: none whole. */
static size_t take_block(struct tail *t, uint8_t *data, size_t len)
{
	struct journal_frame frame;
	size_t used = 0;

	while (used < len && !t->full && !t->closed) {
		size_t n = len - used;

		if (t->left == 0) {
			if (n < JOURNAL_FRAME ||
			    !journal_frame_decode(data + used, t->position, &frame))
				break;
			t->left = frame.len;
			t->stream = frame.stream;
			t->at += JOURNAL_FRAME;
			used += JOURNAL_FRAME;
			continue;
		}
		if (n > t->left)
			n = t->left;
		t->full = pass_on(t, data + used, n);
		used += n;
	}
	return used;
}

/* What a full client did not take is read again: the next block is about what it took. */
static void set_ahead(struct tail *t, size_t used)
{
	t->ahead = t->full ? used : 2 * t->ahead;
	if (t->ahead < BLOCK_MIN)
		t->ahead = BLOCK_MIN;
	if (t->ahead > BLOCK)
		t->ahead = BLOCK;
}

/* How much was read; 0: there is nothing more to do now. */
static size_t read_more(struct tail *t, const struct journal_glance *v)
{
	uint8_t *block = (uint8_t *)t->reactor->read_buffer + FRAME_HEAD;
	uint64_t size = v->written - t->at;
	size_t used;
	ssize_t n;

	if (t->at >= v->written)
		return 0;
	if (size > t->ahead - FRAME_HEAD)
		size = t->ahead - FRAME_HEAD;
	n = pread(t->journal->fd, block, (size_t)size, (off_t)t->at);
	if (n <= 0)
		return 0;
	used = take_block(t, block, (size_t)n);
	set_ahead(t, used);
	return used;
}

/* ---- the pace ---- */

static void say_gap(struct tail *t, const struct journal_glance *v)
{
	uint64_t end = v->offset[0] + v->offset[1];
	uint64_t bytes = end > t->position ? end - t->position : 0;

	if (bytes == 0 || (v->state == JOURNAL_RUNNING && bytes < GAP_STEP))
		return;
	if (t->events->gap)
		t->events->gap(t, bytes);
	t->position = end;
}

static void tell_end(struct tail *t)
{
	struct journal_view v;

	journal_look(t->journal, &v);
	t->events->finished(t, &v.slot.exit, NULL);
}

static void tell_refusal(struct tail *t)
{
	struct err why;

	journal_refusal(t->journal, &why);
	t->events->finished(t, NULL, &why);
}

/* One turn, of so many bytes at most, which is lowered. True if it wants another one soon. */
static bool turn(struct tail *t, size_t *budget)
{
	struct journal_glance v;
	size_t used = 1;

	journal_glance(t->journal, &v);
	if (v.refused && !t->exec) {
		tell_refusal(t);
		return false;
	}
	/* After a restart its pid is not known before init was reached, but it did run. */
	if (v.pid || v.state != JOURNAL_RUNNING || v.recorded > 0)
		tail_start(t, v.pid);
	while (!t->blind && !t->closed && !t->full && *budget > 0 && used > 0) {
		used = read_more(t, &v);
		*budget -= used < *budget ? used : *budget;
	}
	if (t->closed || t->full || *budget == 0)
		return !t->closed && !t->full;
	if (t->exec) {
		t->caught_up(t->exec);
		return false;
	}
	if (!t->blind)
		say_gap(t, &v);
	if (t->closed)
		return false;
	if (v.state != JOURNAL_RUNNING)
		tell_end(t);
	else if (t->events->idle)
		t->events->idle(t);
	return false;
}

/* ---- on behalf of whom a command was begun ---- */

void tail_expect(struct tail *t, struct journal *j, struct exec *x,
		 void (*caught_up)(struct exec *x))
{
	t->journal = journal_ref(j);
	t->at = j->frames_at;
	t->exec = x;
	t->caught_up = caught_up;
}

void tail_watch_readers(struct tail *t, void (*others_read)(struct exec *x))
{
	t->others_read = others_read;
	list(t);
}

static void tell_readers(const struct tail *t)
{
	if (t->exec && t->others_read && atomic_load(&t->journal->readers) > 0)
		t->others_read(t->exec);
}

void tail_start(struct tail *t, uint32_t pid)
{
	if (t->told)
		return;
	t->told = true; /* the callback may close it */
	if (t->events->started)
		t->events->started(t, pid);
}

bool tail_is_at(const struct tail *t, uint64_t position)
{
	return t->position == position && t->left == 0 && !t->closed;
}

void tail_hand(struct tail *t, int stream, uint8_t *data, size_t len, bool recorded)
{
	t->full = t->events->output &&
		  t->events->output(t, stream ? FRAME_STDERR : FRAME_STDOUT, data, len);
	t->position += len;
	t->offset[stream] += len;
	t->at += recorded ? JOURNAL_FRAME + len : 0;
}

void tail_leave(struct tail *t)
{
	size_t budget = RUN_MAX;

	t->exec = NULL;
	t->quiet = false;
	list(t);
	if (!t->full && turn(t, &budget))
		uv_async_send(&t->reactor->wake);
}

static struct tail *unlist_closed(struct reactor *r)
{
	struct tail **at = &r->tails, *gone = NULL;

	while (*at) {
		struct tail *t = *at;

		if (!t->closed) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		t->next = gone;
		gone = t;
	}
	return gone;
}

/*
 * A loop wakes for every job that is done, and may have thousands of tails that wait for one
 * journal to grow: one that has not is told by its counter, without its lock.
 */
static bool has_changed(const struct tail *t, uint32_t bit)
{
	return !t->quiet || t->seen != atomic_load(&t->journal->changes) ||
	       !(atomic_load(&t->journal->waiting) & bit);
}

static bool look(struct tail *t, uint32_t bit, size_t *budget)
{
	bool more;

	/* Before the look, so that what comes after it wakes us again. */
	if (!t->exec)
		atomic_fetch_or(&t->journal->waiting, bit);
	t->seen = atomic_load(&t->journal->changes);
	more = turn(t, budget);
	t->quiet = !more && !t->exec && !t->full;
	return more;
}

/* Those behind this one come first the next time. */
static void begin_behind(struct reactor *r, struct tail *t)
{
	struct tail *last = t->next, *first = r->tails;

	if (!last)
		return;
	r->tails = last;
	while (last->next)
		last = last->next;
	last->next = first;
	t->next = NULL;
}

void tails_run(struct reactor *r)
{
	struct tail *gone, *next;
	size_t budget = RUN_MAX;
	bool more = false;

	for (struct tail *t = r->tails; t; t = t->next) {
		tell_readers(t);
		if (t->closed || t->full || !has_changed(t, bit_of(r)))
			continue;
		more = look(t, bit_of(r), &budget) || more;
		if (budget > 0)
			continue;
		more = true;
		begin_behind(r, t);
		break;
	}
	for (gone = unlist_closed(r); gone; gone = next) {
		next = gone->next;
		tail_free(gone);
	}
	if (more)
		uv_async_send(&r->wake);
}

void tails_wake(struct journal *j)
{
	uint32_t waiting;
	struct berthd *b;

	atomic_fetch_add(&j->changes, 1); /* first: a tail that is not woken has not looked yet */
	waiting = atomic_exchange(&j->waiting, 0);
	b = waiting ? j->reactor->berthd : NULL;
	for (size_t i = 0; waiting; i++, waiting >>= 1)
		if (waiting & 1)
			uv_async_send(&b->reactors[i].wake);
}

#include "berthd/exec/file-op.h"

#include <stdlib.h>

#include "berthd/exec/init-link.h"

/* What init may send of a verb, and what it owes. */
static const struct rule {
	bool body;    /* it takes one, and is done when that is complete */
	bool entries; /* they may come, */
	bool bytes, changes;
	bool owes; /* and an entry or bytes must, before it is done */
} rules[FILE_VERB_END] = {
	[FILE_STAT] = { .entries = true, .owes = true },
	[FILE_LIST] = { .entries = true },
	[FILE_READ] = { .entries = true, .bytes = true, .owes = true },
	[FILE_WRITE] = { .body = true, .entries = true, .owes = true },
	[FILE_MKDIR] = { .entries = true, .owes = true },
	[FILE_MOVE] = { .entries = true, .owes = true },
	[FILE_WATCH] = { .changes = true },
	[FILE_PACK] = { .bytes = true, .owes = true },
	[FILE_UNPACK] = { .body = true },
};

struct file_op {
	struct file_request ask;
	const struct rule *rule;
	const struct file_op_sink *sink;
	void *data;
	struct init_link *link;
	struct file_entry entry; /* the last one */
	uint64_t entries;
	bool begun;  /* bytes came */
	bool acting; /* init may be doing it: how it ends is not known before it says */

	struct reactor *reactor;
	struct job late; /* a failure within file_op_begin() is told from the loop */
	struct err why;
	bool opening, telling, closed;
};

bool file_verb_takes_body(uint32_t verb)
{
	return verb < FILE_VERB_END && rules[verb].body;
}

void file_op_close(struct file_op *o)
{
	if (!o)
		return;
	init_link_close(take_ptr(o->link));
	o->closed = true;
	if (!o->telling)
		free(o);
}

static void on_late(struct job *job)
{
	struct file_op *o = container_of(job, struct file_op, late);

	o->telling = false;
	if (o->closed)
		return free(o);
	o->sink->failed(o->data, &o->why, o->acting);
}

static void fail(struct file_op *o, const struct err *why)
{
	struct err e = *why; /* the link's, which is closed here */

	init_link_close(take_ptr(o->link));
	if (!o->opening)
		return o->sink->failed(o->data, &e, o->acting);
	o->why = e;
	o->telling = true;
	o->late = (struct job){ .done = on_late };
	reactor_post(o->reactor, &o->late);
}

static void fail_because(struct file_op *o, const char *why)
{
	struct err e;

	err_set(&e, ERR_INTERNAL, "the sandbox's init %s", why);
	fail(o, &e);
}

static void out_of_place(struct file_op *o)
{
	fail_because(o, "sent something out of place");
}

/* ---- frames ---- */

static void on_opened(void *data)
{
	struct file_op *o = data;
	cleanup(buf_done) struct buf record = buf_make(FRAME_PAYLOAD_MAX);

	file_request_encode(&record, &o->ask);
	o->acting = !o->rule->body;
	(void)init_link_send(o->link, FRAME_FILE, record.data, record.len);
	if (!o->rule->body)
		init_link_expect(o->link);
	if (o->sink->opened)
		o->sink->opened(o->data);
}

/* Of one entry a guest that sends more has its last word. */
static bool is_too_many(const struct file_op *o)
{
	return (o->ask.verb == FILE_LIST && o->entries > o->ask.limit) ||
	       (o->ask.verb == FILE_READ && o->entries > 1);
}

static void take_entry(struct file_op *o, const struct frame *f)
{
	struct err e;

	if (!o->rule->entries || file_entry_decode(f->payload, &o->entry, &e) < 0)
		return out_of_place(o);
	o->entries++;
	if (is_too_many(o))
		return fail_because(o, "sent more entries than asked for");
	if (o->sink->entry)
		o->sink->entry(o->data, &o->entry);
}

static void take_change(struct file_op *o, const struct frame *f)
{
	struct file_change x;
	struct err e;

	if (!o->rule->changes || file_change_decode(f->payload, &x, &e) < 0)
		return out_of_place(o);
	if (o->sink->change)
		o->sink->change(o->data, &x);
}

/* What takes a body cannot be done before all of it was sent. */
static void take_done(struct file_op *o, const struct frame *f)
{
	struct file_result result = { .entry = o->entries > 0 ? &o->entry : NULL };
	struct file_done done;
	struct err e;

	if (!o->acting || file_done_decode(f->payload, &done, &e) < 0)
		return out_of_place(o);
	if (o->rule->owes && !result.entry && !o->begun)
		return fail_because(o, "gave no answer");
	result.count = done.count;
	init_link_close(take_ptr(o->link));
	o->sink->done(o->data, &result);
}

static void take_failure(struct file_op *o, const struct err *why)
{
	o->acting = false;
	fail(o, why);
}

static void on_frame(void *data, const struct frame *f)
{
	struct file_op *o = data;
	struct err e;

	switch (f->type) {
	case FRAME_ENTRY:
		return take_entry(o, f);
	case FRAME_CHANGE:
		return take_change(o, f);
	case FRAME_DONE:
		return take_done(o, f);
	case FRAME_FAILED:
		file_failed_decode(f->payload, &e);
		return take_failure(o, &e);
	case FRAME_ERROR:
		frame_guest_error(f, &e);
		return take_failure(o, &e);
	default:
		return out_of_place(o);
	}
}

static bool on_bytes(void *data, const uint8_t *b, size_t len)
{
	struct file_op *o = data;

	if (o->rule->bytes && (o->ask.verb != FILE_READ || o->entries > 0)) {
		o->begun = true;
		return o->sink->bytes && o->sink->bytes(o->data, b, len);
	}
	out_of_place(o);
	return false;
}

static void on_drained(void *data)
{
	struct file_op *o = data;

	if (o->sink->drained)
		o->sink->drained(o->data);
}

static void on_failed(void *data, const struct err *why)
{
	fail(data, why);
}

static const struct init_link_events link_events = {
	.opened = on_opened,
	.frame = on_frame,
	.bytes = on_bytes,
	.drained = on_drained,
	.failed = on_failed,
};

/* ---- what a caller does ---- */

int file_op_begin(const struct file_begin *b, struct file_op **ret, struct err *e)
{
	struct init_dial_ask way = { b->by->reactor, b->by->request, b->by->owner, b->sandbox };
	struct file_op *o;

	if (file_request_check(b->ask, e) < 0)
		return -1;
	o = xcalloc(1, sizeof(*o));
	o->ask = *b->ask;
	o->rule = &rules[o->ask.verb];
	o->sink = b->sink;
	o->data = b->data;
	o->reactor = b->by->reactor;
	o->link = init_link_new(o->reactor, &link_events, o);
	o->opening = true;
	init_link_open(o->link, &way);
	o->opening = false;
	*ret = o;
	return 0;
}

bool file_op_send(struct file_op *o, const void *data, size_t len)
{
	return o->link && init_link_send(o->link, FRAME_DATA, data, len);
}

void file_op_commit(struct file_op *o)
{
	if (!o->link)
		return;
	o->acting = true;
	(void)init_link_send(o->link, FRAME_DATA_END, NULL, 0);
	init_link_expect(o->link);
}

void file_op_resume(struct file_op *o)
{
	if (o->link)
		init_link_resume(o->link);
}

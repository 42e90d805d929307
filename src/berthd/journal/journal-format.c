#include "berthd/journal/journal-format.h"

#include <string.h>

#include "proto/frame.h"
#include "proto/writer.h"

#define MAGIC     "BERTHJ2\n"

/* All but the terminal record takes less than this. */
#define SLOT_REST 256

_Static_assert(EXEC_EXIT_MAX + SLOT_REST <= JOURNAL_SLOT, "the longest terminal record fits");

void journal_head_done(struct journal_head *h)
{
	exec_request_done(&h->ask);
}

void journal_slot_encode(struct buf *out, const struct journal_slot *s)
{
	cleanup(buf_done) struct buf exit = buf_make(EXEC_EXIT_MAX);

	if (s->state != JOURNAL_RUNNING)
		exec_exit_encode(&exit, &s->exit);
	writer_u8(out, (uint8_t)s->state);
	writer_u32(out, s->pid);
	exec_size_encode(out, &s->size);
	writer_u64(out, s->ended_ms);
	writer_u64(out, s->offset[0]);
	writer_u64(out, s->offset[1]);
	writer_u64(out, s->recorded);
	writer_u32(out, (uint32_t)exit.len);
	buf_add(out, exit.data, exit.len);
	exec_usage_encode(out, &s->use);
	writer_u8(out, s->gone);
	writer_u8(out, (uint8_t)s->work);
	exec_requests_encode(out, &s->use);
	writer_str(out, s->boot_id);
	writer_u8(out, (uint8_t)s->reboot);
	exec_disk_at_encode(out, &s->use);
}

void journal_begin_encode(struct buf *out, const struct journal_head *h,
			  const struct journal_slot *s)
{
	static const uint8_t zeros[JOURNAL_SLOT];
	cleanup(buf_done) struct buf head = buf_make(JOURNAL_HEAD_MAX);
	cleanup(buf_done) struct buf ask = buf_make(JOURNAL_HEAD_MAX);
	cleanup(buf_done) struct buf slot = buf_make(JOURNAL_SLOT + 1);

	writer_str(&head, h->sandbox);
	writer_str(&head, h->owner);
	writer_u64(&head, h->generation);
	writer_u64(&head, h->started_ms);
	writer_u64(&head, h->started_boot_ms);
	writer_u8(&head, h->background);
	writer_str(&head, h->group);
	writer_u64(&head, h->before.cpu_us);
	writer_u64(&head, h->before.pids_refused);
	writer_u64(&head, h->before.oom_kills);
	writer_u8(&head, h->walled);
	writer_str(&head, h->key);
	writer_str(&head, h->body);
	exec_request_encode(&ask, &h->ask);
	writer_u32(&head, (uint32_t)ask.len);
	buf_add(&head, ask.data, ask.len);
	buf_adds(out, MAGIC);
	writer_u32(out, (uint32_t)head.len);
	writer_u32(out, 0);
	journal_slot_encode(&slot, s);
	buf_add(&slot, zeros, JOURNAL_SLOT - slot.len);
	buf_add(out, slot.data, slot.len);
	buf_add(out, head.data, head.len);
}

int journal_prelude_decode(struct bytes wire, uint32_t *head_len, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct bytes magic = reader_bytes(&r, strlen(MAGIC));
	uint32_t len = reader_u32(&r), nothing = reader_u32(&r);

	if (!reader_done(&r) || memcmp(magic.data, MAGIC, magic.len) != 0 || nothing != 0 ||
	    len > JOURNAL_HEAD_MAX)
		return err_set(e, ERR_INTERNAL, "this is no journal");
	*head_len = len;
	return 0;
}

int journal_slot_decode(struct bytes wire, struct journal_slot *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct journal_slot s = { .state = (enum journal_state)reader_u8(&r) };
	struct bytes record;
	bool ended;

	s.pid = reader_u32(&r);
	s.size = exec_size_read(&r);
	s.ended_ms = reader_u64(&r);
	s.offset[0] = reader_u64(&r);
	s.offset[1] = reader_u64(&r);
	s.recorded = reader_u64(&r);
	record = reader_bytes(&r, reader_u32(&r));
	s.use = exec_usage_read(&r);
	s.gone = reader_u8(&r) == 1;
	/* From here on it is zeros in what was written before it was there. */
	s.work = (enum journal_work)reader_u8(&r);
	exec_requests_read(&r, &s.use);
	reader_str(&r, s.boot_id, sizeof(s.boot_id));
	s.reboot = (enum journal_reboot)reader_u8(&r);
	exec_disk_at_read(&r, &s.use);
	if (r.bad || wire.len != JOURNAL_SLOT || s.state >= JOURNAL_STATE_COUNT ||
	    s.work >= JOURNAL_WORK_COUNT || s.reboot >= JOURNAL_REBOOT_COUNT)
		return err_set(e, ERR_INTERNAL, "a journal's state cannot be read");
	ended = s.state != JOURNAL_RUNNING;
	if (ended ? exec_exit_decode(record, &s.exit, e) < 0 : record.len != 0)
		return err_set(e, ERR_INTERNAL, "a journal's terminal record cannot be read");
	*ret = s;
	return 0;
}

int journal_head_decode(struct bytes wire, struct journal_head *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	struct journal_head h = { 0 };
	struct bytes ask;
	uint8_t background, walled;

	reader_str(&r, h.sandbox, sizeof(h.sandbox));
	reader_str(&r, h.owner, sizeof(h.owner));
	h.generation = reader_u64(&r);
	h.started_ms = reader_u64(&r);
	h.started_boot_ms = reader_u64(&r);
	background = reader_u8(&r);
	reader_str(&r, h.group, sizeof(h.group));
	h.before.cpu_us = reader_u64(&r);
	h.before.pids_refused = reader_u64(&r);
	h.before.oom_kills = reader_u64(&r);
	walled = reader_u8(&r);
	reader_str(&r, h.key, sizeof(h.key));
	reader_str(&r, h.body, sizeof(h.body));
	ask = reader_bytes(&r, reader_u32(&r));
	if (!reader_done(&r) || background > 1 || walled > 1)
		return err_set(e, ERR_INTERNAL, "a journal's head cannot be read");
	h.background = background;
	h.walled = walled;
	if (exec_request_decode(ask, &h.ask, e) < 0)
		return err_wrap(e, "a journal's head");
	*ret = h;
	return 0;
}

static void put_u64(uint8_t *to, uint64_t n)
{
	for (int i = 0; i < 8; i++)
		to[i] = (uint8_t)(n >> (56 - 8 * i));
}

void journal_frame_encode(uint8_t to[JOURNAL_FRAME], const struct journal_frame *f)
{
	put_u64(to, f->position);
	put_u64(to + 8, f->time_us);
	put_u64(to + 16, (uint64_t)f->len << 32 | (uint64_t)(f->stream + 1) << 24);
}

bool journal_frame_decode(const uint8_t from[JOURNAL_FRAME], uint64_t position,
			  struct journal_frame *ret)
{
	struct reader r = reader_make(from, JOURNAL_FRAME);
	struct journal_frame f = { .position = reader_u64(&r), .time_us = reader_u64(&r) };
	uint32_t rest;

	f.len = reader_u32(&r);
	rest = reader_u32(&r);
	if (f.position != position || f.len == 0 || f.len > FRAME_PAYLOAD_MAX ||
	    (rest != 1U << 24 && rest != 2U << 24))
		return false;
	f.stream = rest == 2U << 24;
	*ret = f;
	return true;
}

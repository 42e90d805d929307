#include "berthd/journal/exec-usage.h"

#include "proto/writer.h"

void exec_usage_encode(struct buf *out, const struct exec_usage *u)
{
	writer_u8(out, u->known);
	writer_u8(out, u->alone);
	writer_u64(out, u->cpu_us);
	writer_u64(out, u->memory_bytes);
	writer_u64(out, u->memory_peak_bytes);
	writer_u64(out, u->disk_bytes);
	writer_u64(out, u->pids_peak);
	writer_u8(out, u->hit);
	writer_u8(out, (uint8_t)u->limit);
	writer_u64(out, u->value);
	writer_u64(out, u->peak);
}

struct exec_usage exec_usage_read(struct reader *r)
{
	struct exec_usage u = { .known = reader_u8(r) != 0, .alone = reader_u8(r) != 0 };
	uint8_t limit;

	u.cpu_us = reader_u64(r);
	u.memory_bytes = reader_u64(r);
	u.memory_peak_bytes = reader_u64(r);
	u.disk_bytes = reader_u64(r);
	u.pids_peak = reader_u64(r);
	u.hit = reader_u8(r) != 0;
	limit = reader_u8(r);
	u.limit = limit < LIMIT_COUNT ? (enum limit)limit : LIMIT_MEMORY_MB;
	u.value = reader_u64(r);
	u.peak = reader_u64(r);
	return u;
}

void exec_requests_encode(struct buf *out, const struct exec_usage *u)
{
	writer_u8(out, u->counted);
	writer_u64(out, u->requests);
}

void exec_requests_read(struct reader *r, struct exec_usage *u)
{
	u->counted = reader_u8(r) == 1;
	u->requests = reader_u64(r);
}

void exec_disk_at_encode(struct buf *out, const struct exec_usage *u)
{
	writer_u64(out, u->disk_at_ms);
}

void exec_disk_at_read(struct reader *r, struct exec_usage *u)
{
	u->disk_at_ms = reader_u64(r);
}

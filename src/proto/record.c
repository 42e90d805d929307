#include "proto/record.h"

#include "proto/writer.h"

void record_encode(struct buf *out, const struct field *fields, const void *record)
{
	for (const struct field *f = fields; f->type != FIELD_END; f++) {
		const void *at = (const char *)record + f->offset;

		if (f->type == FIELD_U32)
			writer_u32(out, *(const uint32_t *)at);
		else if (f->type == FIELD_U64)
			writer_u64(out, *(const uint64_t *)at);
		else
			writer_str(out, at);
	}
}

int record_decode(struct bytes wire, const struct field *fields, void *record, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);

	for (const struct field *f = fields; f->type != FIELD_END; f++) {
		void *at = (char *)record + f->offset;

		if (f->type == FIELD_U32)
			*(uint32_t *)at = reader_u32(&r);
		else if (f->type == FIELD_U64)
			*(uint64_t *)at = reader_u64(&r);
		else
			reader_str(&r, at, f->size);
	}
	if (!reader_done(&r))
		return err_set(e, ERR_INVALID, "a record is cut, too long or has a tail");
	return 0;
}

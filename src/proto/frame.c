#include "proto/frame.h"

#include <assert.h>
#include <string.h>

#include "lib/errno-map.h"
#include "proto/writer.h"

ssize_t frame_next(struct bytes wire, struct frame *ret, struct err *e)
{
	struct reader r = reader_make(wire.data, wire.len);
	uint8_t type = reader_u8(&r);
	uint32_t len = reader_u32(&r);
	struct bytes payload;

	if (r.bad)
		return 0;
	if (type <= FRAME_NONE || type >= FRAME_TYPE_END)
		return err_set(e, ERR_INVALID, "unknown frame type %u", type);
	if (len > FRAME_PAYLOAD_MAX)
		return err_set(e, ERR_TOO_LARGE, "a frame of %u bytes is too long", len);
	payload = reader_bytes(&r, len);
	if (r.bad)
		return 0;
	*ret = (struct frame){ .type = (enum frame_type)type, .payload = payload };
	return FRAME_HEAD + (ssize_t)len;
}

void frame_head(uint8_t head[FRAME_HEAD], enum frame_type type, size_t len)
{
	assert(len <= FRAME_PAYLOAD_MAX);
	head[0] = (uint8_t)type;
	for (int i = 0; i < 4; i++)
		head[1 + i] = (uint8_t)(len >> (24 - 8 * i));
}

void frame_add(struct buf *out, enum frame_type type, const void *payload, size_t len)
{
	uint8_t head[FRAME_HEAD];

	frame_head(head, type, len);
	buf_add(out, head, sizeof(head));
	if (len > 0)
		buf_add(out, payload, len);
}

void frame_add_u32(struct buf *out, enum frame_type type, uint32_t n)
{
	uint8_t head[FRAME_HEAD];

	frame_head(head, type, 4);
	buf_add(out, head, sizeof(head));
	writer_u32(out, n);
}

int frame_u32(const struct frame *f, uint32_t *ret, struct err *e)
{
	struct reader r = reader_make(f->payload.data, f->payload.len);
	uint32_t n = reader_u32(&r);

	if (!reader_done(&r))
		return err_set(e, ERR_INVALID, "a frame of type %u must hold one number", f->type);
	*ret = n;
	return 0;
}

void frame_add_error(struct buf *out, const struct err *why)
{
	cleanup(buf_done) struct buf payload = buf_make(1024);

	writer_u32(&payload, why->code);
	writer_str(&payload, why->msg);
	writer_str(&payload, why->fix);
	if (why->reason)
		writer_str(&payload, why->reason);
	frame_add(out, FRAME_ERROR, payload.data, payload.len);
}

void frame_error(const struct frame *f, struct err *ret)
{
	struct reader r = reader_make(f->payload.data, f->payload.len);
	enum err_code code = err_code_by_number(reader_u32(&r));
	char msg[sizeof(ret->msg)], fix[sizeof(ret->fix)], reason[64] = "";

	reader_str(&r, msg, sizeof(msg));
	reader_str(&r, fix, sizeof(fix));
	if (r.pos < r.end)
		reader_str(&r, reason, sizeof(reason));
	if (!reader_done(&r)) {
		err_set(ret, ERR_INTERNAL, "an error that cannot be read");
		return;
	}
	/* Whether a key is known is never the other end's to say: it may be a guest. */
	err_set(ret, code == ERR_UNAUTHENTICATED ? ERR_INTERNAL : code, "%s", msg);
	err_fix(ret, "%s", fix);
	err_word_reason(ret, reason);
}

bool frame_guest_says(enum err_code code)
{
	static const bool said[ERR_COUNT] = {
		[ERR_INVALID] = true,
		[ERR_DENIED] = true, /* by the guest's own kernel */
		[ERR_NOT_FOUND] = true,
		[ERR_CONFLICT] = true,
		[ERR_TOO_LARGE] = true,
		[ERR_LIMIT] = true,
		[ERR_BUSY] = true,
		[ERR_TIMEOUT] = true,
		[ERR_UNSUPPORTED] = true,
		[ERR_INTERNAL] = true,
	};

	return said[code];
}

static bool is_guest_reason(const char *reason)
{
	static const char *const words[] = { REASON_NO_COMMAND, REASON_CANNOT_RUN,
					     REASON_LEFT_UNKNOWN };

	for (size_t i = 0; i < array_len(words); i++)
		if (strcmp(words[i], reason) == 0)
			return true;
	return false;
}

void frame_guest_error(const struct frame *f, struct err *ret)
{
	struct reader r = reader_make(f->payload.data, f->payload.len);
	uint32_t code = reader_u32(&r);

	frame_error(f, ret);
	if (code != ret->code || !frame_guest_says(ret->code) ||
	    (ret->reason && !is_guest_reason(ret->reason)))
		err_set(ret, ERR_INTERNAL, "the sandbox's init said what it never says");
	ret->fix[0] = '\0';
}

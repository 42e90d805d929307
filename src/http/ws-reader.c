#include "http/ws-reader.h"

#include <string.h>

#include "lib/str.h"

#define FIN     0x80
#define RSV     0x70
#define MASKED  0x80
#define LEN_16  126
#define LEN_64  127
#define CONTROL 8 /* this bit of an opcode */

void ws_reader_init(struct ws_reader *r)
{
	*r = (struct ws_reader){
		.head_want = 2,
		.message = buf_make(WS_MESSAGE_MAX + 1),
		.control = buf_make(WS_CONTROL_MAX + 1),
	};
}

void ws_reader_done(struct ws_reader *r)
{
	buf_done(&r->message);
	buf_done(&r->control);
}

static enum ws_event bad(struct ws_reader *r, enum ws_close code)
{
	r->close_code = (uint16_t)code;
	return WS_BAD;
}

/* ---- a frame's head ---- */

static bool is_known(unsigned opcode)
{
	return opcode <= WS_OP_BINARY || (opcode >= WS_OP_CLOSE && opcode <= WS_OP_PONG);
}

/* May this frame come here? */
static bool is_due(const struct ws_reader *r)
{
	if (r->opcode & CONTROL)
		return r->fin && (r->head[1] & 0x7f) <= WS_CONTROL_MAX;
	return (r->opcode == WS_OP_MORE) == (r->type != WS_OP_MORE);
}

static size_t head_length(uint8_t second)
{
	unsigned len = second & 0x7fU;

	return 2 + 4 + (len == LEN_64 ? 8 : len == LEN_16 ? 2
							  : 0);
}

/* False if it is not in its shortest form. */
static bool read_length(struct ws_reader *r)
{
	unsigned len = r->head[1] & 0x7fU;
	size_t more = len == LEN_64 ? 8 : len == LEN_16 ? 2
							: 0;

	r->left = more ? 0 : len;
	for (size_t i = 0; i < more; i++)
		r->left = r->left << 8 | r->head[2 + i];
	if (more == 2)
		return r->left >= LEN_16;
	return more == 0 || (r->left > UINT16_MAX && r->left >> 63 == 0);
}

static enum ws_event begin_frame(struct ws_reader *r)
{
	if (!read_length(r))
		return bad(r, WS_CLOSE_PROTOCOL);
	r->at = 0;
	if (r->opcode & CONTROL) {
		buf_clear(&r->control);
		return WS_NOTHING;
	}
	if (r->opcode != WS_OP_MORE)
		r->type = r->opcode;
	if (r->left > WS_MESSAGE_MAX - r->message.len)
		return bad(r, WS_CLOSE_TOO_BIG);
	return WS_NOTHING;
}

static enum ws_event take_head(struct ws_reader *r, uint8_t byte)
{
	r->head[r->head_have++] = byte;
	if (r->head_have == 1) {
		r->fin = byte & FIN;
		r->opcode = (enum ws_opcode)(byte & 0x0f);
		return byte & RSV || !is_known(r->opcode) ? bad(r, WS_CLOSE_PROTOCOL) : WS_NOTHING;
	}
	if (r->head_have == 2) {
		if (!(byte & MASKED) || !is_due(r))
			return bad(r, WS_CLOSE_PROTOCOL);
		r->head_want = head_length(byte);
	}
	return r->head_have == r->head_want ? begin_frame(r) : WS_NOTHING;
}

/* ---- its payload ---- */

static void take_payload(struct ws_reader *r, const uint8_t *data, size_t len)
{
	struct buf *to = r->opcode & CONTROL ? &r->control : &r->message;
	const uint8_t *mask = r->head + r->head_want - 4;
	size_t from = to->len;

	buf_add(to, data, len);
	for (size_t i = 0; i < len; i++)
		to->data[from + i] = (char)((uint8_t)to->data[from + i] ^ mask[(r->at + i) & 3]);
	r->at += len;
	r->left -= len;
}

static bool is_utf8(const char *text, size_t len)
{
	return utf8_valid_prefix(text, len) == len;
}

static bool is_close_code(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

static enum ws_event end_close(struct ws_reader *r)
{
	const uint8_t *p = (const uint8_t *)buf_str(&r->control);
	unsigned code = r->control.len >= 2 ? (unsigned)p[0] << 8 | p[1] : WS_CLOSE_NO_CODE;

	if (r->control.len == 1 || (r->control.len >= 2 && !is_close_code(code)))
		return bad(r, WS_CLOSE_PROTOCOL);
	if (r->control.len > 2 && !is_utf8(r->control.data + 2, r->control.len - 2))
		return bad(r, WS_CLOSE_NOT_UTF8);
	r->close_code = (uint16_t)code;
	return WS_CLOSE;
}

static enum ws_event end_message(struct ws_reader *r)
{
	enum ws_opcode type = r->type;

	if (!r->fin)
		return WS_NOTHING;
	r->type = WS_OP_MORE;
	r->taken = true;
	if (type == WS_OP_BINARY)
		return WS_BINARY;
	return is_utf8(buf_str(&r->message), r->message.len) ? WS_TEXT : bad(r, WS_CLOSE_NOT_UTF8);
}

static enum ws_event end_frame(struct ws_reader *r)
{
	r->head_have = 0;
	r->head_want = 2;
	switch (r->opcode) {
	case WS_OP_CLOSE:
		return end_close(r);
	case WS_OP_PING:
		return WS_PING;
	case WS_OP_PONG:
		return WS_PONG;
	case WS_OP_MORE:
	case WS_OP_TEXT:
	case WS_OP_BINARY:
		break;
	}
	return end_message(r);
}

enum ws_event ws_reader_take(struct ws_reader *r, const void *data, size_t len, size_t *used)
{
	const uint8_t *p = data;
	enum ws_event event = WS_NOTHING;
	size_t at = 0;

	if (r->taken)
		buf_clear(&r->message);
	r->taken = false;
	while (event == WS_NOTHING && at < len) {
		if (r->head_have < r->head_want) {
			event = take_head(r, p[at++]);
		} else {
			size_t n = len - at < r->left ? len - at : (size_t)r->left;

			take_payload(r, p + at, n);
			at += n;
		}
		if (event == WS_NOTHING && r->head_have == r->head_want && r->left == 0)
			event = end_frame(r);
	}
	*used = at;
	return event;
}

size_t ws_head(uint8_t head[WS_HEAD_MAX], enum ws_opcode opcode, size_t len)
{
	size_t more = len > UINT16_MAX ? 8 : len >= LEN_16 ? 2
							   : 0;

	head[0] = (uint8_t)(FIN | opcode);
	head[1] = (uint8_t)(more == 8 ? LEN_64 : more == 2 ? LEN_16
							   : len);
	for (size_t i = 0; i < more; i++)
		head[2 + i] = (uint8_t)((uint64_t)len >> 8 * (more - 1 - i));
	return 2 + more;
}

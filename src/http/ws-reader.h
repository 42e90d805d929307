/*
 * What a client sends on a WebSocket (RFC 6455), as messages.
 *
 * Pure: bytes go in, cut wherever, and whole messages come out. Everything the
 * standard forbids a client is refused with the close code it names: bytes that
 * are not masked, reserved bits, unknown opcodes, lengths not in their shortest
 * form, control frames that are long or in pieces, text that is not UTF-8.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define WS_MESSAGE_MAX (256UL * 1024) /* longer is refused with 1009 */
#define WS_CONTROL_MAX 125
#define WS_HEAD_MAX    14

enum ws_opcode {
	WS_OP_MORE = 0,
	WS_OP_TEXT = 1,
	WS_OP_BINARY = 2,
	WS_OP_CLOSE = 8,
	WS_OP_PING = 9,
	WS_OP_PONG = 10,
};

enum ws_close {
	WS_CLOSE_NORMAL = 1000,
	WS_CLOSE_GOING_AWAY = 1001,
	WS_CLOSE_PROTOCOL = 1002,
	WS_CLOSE_NO_CODE = 1005, /* never sent: the frame was empty */
	WS_CLOSE_NOT_UTF8 = 1007,
	WS_CLOSE_TOO_BIG = 1009,
	WS_CLOSE_FAILED = 1011,
};

enum ws_event {
	WS_NOTHING, /* all bytes were used, no message is whole */
	WS_TEXT,    /* in `message`, as WS_BINARY */
	WS_BINARY,
	WS_PING, /* in `control`, as WS_PONG */
	WS_PONG,
	WS_CLOSE, /* `close_code` */
	WS_BAD,   /* `close_code` is what to answer; nothing more may be fed */
};

struct ws_reader {
	uint8_t head[WS_HEAD_MAX];
	size_t head_have, head_want;
	uint64_t left; /* of this frame's payload */
	size_t at;     /* in it, for the mask */
	enum ws_opcode opcode;
	bool fin;
	enum ws_opcode type; /* of the message in pieces; WS_OP_MORE: there is none */
	struct buf message;
	struct buf control;
	bool taken; /* the message was given out: begin anew */
	uint16_t close_code;
};

void ws_reader_init(struct ws_reader *r);
void ws_reader_done(struct ws_reader *r);

/* Up to the next event. What it points to stays until the next call. */
enum ws_event ws_reader_take(struct ws_reader *r, const void *data, size_t len, size_t *used);

/* The head of a frame to a client: never masked, in one piece. Returns its length. */
size_t ws_head(uint8_t head[WS_HEAD_MAX], enum ws_opcode opcode, size_t len);

#include "http/websocket.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/server.h"
#include "http/tunnel.h"
#include "lib/hash.h"
#include "lib/str.h"

#define KEY_CHARS  24 /* 16 bytes as base64 */
#define GUID       "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define PING_MS    30000
#define SILENT_MAX 2 /* pings without any word from the client: it is gone */

struct websocket {
	struct http_tunnel *t; /* NULL: closed */
	const struct websocket_events *events;
	void *data;
	struct ws_reader reader;
	uv_timer_t ping;
	unsigned silent; /* pings since it last said anything */
	bool paused;     /* by the owner */
	bool pong_due;   /* the last ping waits for room; one answer is enough for all of them */
	struct buf pinged;
	bool reading; /* in on_data(): the memory stays until that is through */
};

static void on_timer_closed(uv_handle_t *handle)
{
	struct websocket *w = handle->data;

	ws_reader_done(&w->reader);
	buf_done(&w->pinged);
	free(w);
}

static void websocket_free(struct websocket *w)
{
	w->events = NULL;
	if (!w->reading)
		uv_close((uv_handle_t *)&w->ping, on_timer_closed);
}

/* ---- to the client ---- */

static bool send_frame(struct websocket *w, enum ws_opcode opcode, const void *bytes, size_t len)
{
	uint8_t head[WS_HEAD_MAX];
	size_t n = ws_head(head, opcode, len);

	if (!w->t)
		return false;
	return http_tunnel_write_two(w->t, head, n, bytes, len);
}

static void send_close(struct websocket *w, unsigned code)
{
	uint8_t payload[2] = { (uint8_t)(code >> 8), (uint8_t)code };

	(void)send_frame(w, WS_OP_CLOSE, payload, code == WS_CLOSE_NO_CODE ? 0 : sizeof(payload));
	http_tunnel_close(take_ptr(w->t));
}

bool websocket_send(struct websocket *w, bool text, const void *bytes, size_t len)
{
	return send_frame(w, text ? WS_OP_TEXT : WS_OP_BINARY, bytes, len);
}

void websocket_close(struct websocket *w, enum ws_close code)
{
	if (w->t)
		send_close(w, code);
	websocket_free(w);
}

void websocket_pause(struct websocket *w)
{
	w->paused = true;
	if (w->t)
		http_tunnel_pause(w->t);
}

void websocket_resume(struct websocket *w)
{
	w->paused = false;
	if (w->t)
		http_tunnel_resume(w->t);
}

/* ---- from the client ---- */

/* The client's end: tell the owner, once, unless it was first. */
static void gone(struct websocket *w)
{
	const struct websocket_events *events = take_ptr(w->events);

	if (events)
		events->on_gone(w->data);
	websocket_free(w);
}

/* A client that pings and does not read is answered when it does, once (RFC 6455, 5.5.3). */
static void pong(struct websocket *w, const struct buf *payload)
{
	w->pong_due = http_tunnel_is_full(w->t);
	if (!w->pong_due) {
		(void)send_frame(w, WS_OP_PONG, buf_str(payload), payload->len);
		return;
	}
	buf_clear(&w->pinged);
	buf_add(&w->pinged, buf_str(payload), payload->len);
}

static void take(struct websocket *w, enum ws_event event)
{
	const struct buf *m = &w->reader.message, *c = &w->reader.control;

	switch (event) {
	case WS_TEXT:
	case WS_BINARY:
		return w->events->on_message(w->data, event == WS_TEXT, buf_str(m), m->len);
	case WS_PING:
		return pong(w, c);
	case WS_CLOSE:
	case WS_BAD:
		return send_close(w, w->reader.close_code);
	case WS_PONG:
	case WS_NOTHING:
		return;
	}
}

/* A pause is kept to the message: what is behind it stays where it was read to. */
static size_t on_data(void *data, const char *bytes, size_t len)
{
	struct websocket *w = data;
	size_t taken = 0;

	w->silent = 0;
	w->reading = true;
	while (taken < len && w->t && !w->paused) {
		size_t used = 0;
		enum ws_event event =
			ws_reader_take(&w->reader, bytes + taken, len - taken, &used);

		taken += used;
		take(w, event);
	}
	w->reading = false;
	if (!w->t) /* closed by either side meanwhile */
		gone(w);
	return taken;
}

static void on_drain(void *data)
{
	struct websocket *w = data;

	if (w->pong_due)
		(void)send_frame(w, WS_OP_PONG, buf_str(&w->pinged), w->pinged.len);
	w->pong_due = false;
	w->events->on_drain(w->data);
}

static void on_gone(void *data)
{
	struct websocket *w = data;

	w->t = NULL;
	gone(w);
}

static void on_ping(uv_timer_t *timer)
{
	struct websocket *w = timer->data;

	if (w->silent++ < SILENT_MAX) {
		(void)send_frame(w, WS_OP_PING, NULL, 0);
		return;
	}
	http_tunnel_close(take_ptr(w->t));
	gone(w);
}

static const struct http_tunnel_events tunnel_events = { on_data, on_drain, on_gone };

/* ---- the handshake ---- */

static int is_key(const char *key)
{
	cleanup(buf_done) struct buf raw = buf_make(64);
	struct err ignored;

	return strlen(key) == KEY_CHARS && base64_decode(key, &raw, &ignored) == 0 && raw.len == 16;
}

int websocket_check(const struct http_exchange *x, struct err *e)
{
	const char *version = http_header(x, "Sec-WebSocket-Version");
	const char *key = http_header(x, "Sec-WebSocket-Key");

	if (!x->upgrade || strcasecmp(x->upgrade, "websocket") != 0) {
		err_set(e, ERR_INVALID, "this wants a WebSocket");
		return err_fix(e, "Send `Connection: Upgrade` and `Upgrade: websocket`.");
	}
	if (!version || strcmp(version, "13") != 0)
		return err_set(e, ERR_INVALID, "Sec-WebSocket-Version must be 13");
	if (!key || !is_key(key))
		return err_set(e, ERR_INVALID, "Sec-WebSocket-Key must be 16 bytes in base64");
	return 0;
}

static void answer_key(struct http_exchange *x)
{
	cleanup(buf_done) struct buf text = buf_make(128), accept = buf_make(64);
	uint8_t digest[HASH_SHA1_SIZE];

	buf_addf(&text, "%s" GUID, http_header(x, "Sec-WebSocket-Key"));
	hash_sha1(text.data, text.len, digest);
	base64_add(&accept, digest, sizeof(digest));
	(void)!http_reply_header(x, "Sec-WebSocket-Accept", buf_str(&accept));
}

struct websocket *websocket_accept(struct http_exchange *x, const struct websocket_events *events,
				   void *data)
{
	struct websocket *w = xcalloc(1, sizeof(*w));

	w->events = events;
	w->data = data;
	w->pinged = buf_make(WS_CONTROL_MAX + 1);
	ws_reader_init(&w->reader);
	uv_timer_init(http_exchange_server(x)->loop, &w->ping);
	w->ping.data = w;
	uv_timer_start(&w->ping, on_ping, PING_MS, PING_MS);
	answer_key(x);
	w->t = http_upgrade(x, "websocket", &tunnel_events, w);
	return w;
}

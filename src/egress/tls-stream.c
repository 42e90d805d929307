#include "egress/tls-stream.h"

#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/loop.h"

struct piece {
	uv_write_t req;
	struct tls_stream *side;
	char data[];
};

static void broken(struct tls_stream *s, const char *why)
{
	if (!s->closing)
		s->events->on_broken(s, why);
}

static void on_written(uv_write_t *req, int status)
{
	struct piece *p = container_of(req, struct piece, req);
	struct tls_stream *s = p->side;

	free(p);
	s->pieces--;
	if (s->closing)
		return;
	if (status < 0)
		return broken(s, uv_strerror(status));
	if (tls_stream_backlog(s) < TLS_STREAM_BACKLOG_MAX / 2)
		s->events->on_drained(s);
}

static void raw_write(struct tls_stream *s, const char *data, size_t len)
{
	uv_buf_t now = uv_buf_init((char *)data, (unsigned)len);
	struct piece *p;
	int n;

	if (s->closing || s->shut || len == 0)
		return;
	n = tls_stream_backlog(s) == 0 ? uv_try_write((uv_stream_t *)&s->tcp, &now, 1) : 0;
	if (n == (int)len)
		return;
	n = n < 0 ? 0 : n; /* an error comes again, from the queue */
	p = xrealloc(NULL, sizeof(*p) + len - (size_t)n);
	p->side = s;
	memcpy(p->data, data + n, len - (size_t)n);
	now = uv_buf_init(p->data, (unsigned)(len - (size_t)n));
	if (uv_write(&p->req, (uv_stream_t *)&s->tcp, &now, 1, on_written) < 0)
		free(p); /* the socket is dead: reading says so */
	else
		s->pieces++;
}

static void tls_flush(struct tls_stream *s)
{
	char data[16 * 1024];
	int n;

	while ((n = BIO_read(SSL_get_wbio(s->ssl), data, sizeof(data))) > 0)
		raw_write(s, data, (size_t)n);
}

static void tls_broken(struct tls_stream *s)
{
	unsigned long code = ERR_get_error();
	const char *why = ERR_reason_error_string(code);

	ERR_clear_error();
	tls_flush(s); /* our alert */
	broken(s, why ? why : "TLS ended in the middle");
}

static void peer_ended(struct tls_stream *s)
{
	if (s->ended || s->closing)
		return;
	s->ended = true;
	s->events->on_end(s);
}

static void on_shut(uv_shutdown_t *req, int status)
{
	(void)status;
	free(req);
}

static void shut(struct tls_stream *s)
{
	uv_shutdown_t *req;

	if (s->shut || s->closing)
		return;
	req = xcalloc(1, sizeof(*req));
	s->shut = true;
	if (uv_shutdown(req, (uv_stream_t *)&s->tcp, on_shut) < 0)
		free(req);
}

/* Whatever TLS can do with the bytes it has. False: it is over. */
static bool tls_turn(struct tls_stream *s)
{
	char data[16 * 1024];
	int n;

	ERR_clear_error();
	if (!s->ready) {
		n = SSL_do_handshake(s->ssl);
		tls_flush(s);
		if (n != 1 && SSL_get_error(s->ssl, n) == SSL_ERROR_WANT_READ)
			return true;
		if (n != 1)
			return tls_broken(s), false;
		s->ready = true;
		s->events->on_ready(s);
	}
	while (!s->closing && !s->paused && (n = SSL_read(s->ssl, data, sizeof(data))) > 0)
		s->events->on_data(s, data, (size_t)n);
	if (s->closing || s->paused)
		return false;
	tls_flush(s);
	n = SSL_get_error(s->ssl, n);
	if (n == SSL_ERROR_ZERO_RETURN)
		peer_ended(s);
	else if (n != SSL_ERROR_WANT_READ)
		tls_broken(s);
	return n == SSL_ERROR_WANT_READ;
}

void tls_stream_feed(struct tls_stream *s, const char *data, size_t len)
{
	if (!s->ssl)
		return s->events->on_data(s, data, len);
	(void)!BIO_write(SSL_get_rbio(s->ssl), data, (int)len);
	(void)tls_turn(s);
}

static void on_read_buffer(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	const struct tls_stream *s = handle->data;

	(void)suggested;
	*ret = uv_buf_init(s->read_buffer, TLS_STREAM_READ_SIZE);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
	struct tls_stream *s = stream->data;

	if (s->closing || n == 0)
		return;
	if (n == UV_EOF && s->ssl && !s->ended)
		return broken(s, "it closed without an end of TLS");
	if (n == UV_EOF) {
		uv_read_stop(stream);
		s->reading = false;
		return peer_ended(s);
	}
	if (n < 0)
		return broken(s, uv_strerror((int)n));
	tls_stream_feed(s, b->base, (size_t)n);
}

void tls_stream_begin(struct tls_stream *s)
{
	bool want = !s->paused && !s->ended && !s->closing;

	if (want && !s->reading)
		uv_read_start((uv_stream_t *)&s->tcp, on_read_buffer, on_read);
	else if (!want && s->reading)
		uv_read_stop((uv_stream_t *)&s->tcp);
	s->reading = want;
}

void tls_stream_pause(struct tls_stream *s, bool pause)
{
	if (s->closing || s->paused == pause)
		return;
	s->paused = pause;
	/* TLS may hold bytes that were read before the pause. */
	if (!pause && s->ssl && s->ready && !tls_turn(s) && (s->closing || s->paused))
		return;
	tls_stream_begin(s);
}

void tls_stream_init(struct tls_stream *s, uv_loop_t *loop)
{
	uv_tcp_init(loop, &s->tcp);
	s->tcp.data = s;
	s->opened = true;
	s->ready = true;
}

int tls_stream_open(struct tls_stream *s, uv_loop_t *loop, int fd, struct err *e)
{
	int r;

	tls_stream_init(s, loop);
	r = uv_tcp_open(&s->tcp, fd);
	if (r < 0) {
		close(fd);
		return err_uv(e, r, "open a connection");
	}
	return 0;
}

void tls_stream_tls(struct tls_stream *s, SSL *ssl)
{
	s->ssl = ssl;
	s->ready = false;
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	(void)tls_turn(s);
}

void tls_stream_write(struct tls_stream *s, const char *data, size_t len)
{
	if (!s->ssl)
		return raw_write(s, data, len);
	if (len > 0 && SSL_write(s->ssl, data, (int)len) <= 0)
		return tls_broken(s);
	tls_flush(s);
}

void tls_stream_end(struct tls_stream *s)
{
	if (s->ending || s->closing)
		return;
	s->ending = true;
	if (s->ssl && s->ready) {
		(void)SSL_shutdown(s->ssl);
		tls_flush(s);
	}
	shut(s);
}

size_t tls_stream_backlog(const struct tls_stream *s)
{
	return uv_stream_get_write_queue_size((const uv_stream_t *)&s->tcp) +
	       s->pieces * sizeof(struct piece);
}

void tls_stream_close(struct tls_stream *s, uv_close_cb closed)
{
	if (s->closing || !s->opened)
		return;
	s->closing = true;
	uv_close((uv_handle_t *)&s->tcp, closed);
}

void tls_stream_reset(struct tls_stream *s, uv_close_cb closed)
{
	if (s->closing || !s->opened)
		return;
	s->closing = true;
	if (uv_tcp_close_reset(&s->tcp, closed) < 0)
		uv_close((uv_handle_t *)&s->tcp, closed); /* its end is sent already */
}

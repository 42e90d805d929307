#include "init/replay-buffer.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void replay_buffer_init(struct replay_buffer *k)
{
	*k = (struct replay_buffer){ .pipe = { -1, -1 }, .null = -1 };
}

void replay_buffer_done(struct replay_buffer *k)
{
	free(k->data);
	close_fd(&k->pipe[0]);
	close_fd(&k->pipe[1]);
	close_fd(&k->null);
	replay_buffer_init(k);
}

size_t replay_buffer_len(const struct replay_buffer *k)
{
	return k->len + k->piped;
}

size_t replay_buffer_room(const struct replay_buffer *k)
{
	return replay_buffer_len(k) < REPLAY_MAX ? REPLAY_MAX - replay_buffer_len(k) : 0;
}

uint8_t *replay_buffer_space(struct replay_buffer *k, size_t want)
{
	if (k->at > 0 && k->size - k->at - k->len < want) {
		memmove(k->data, k->data + k->at, k->len);
		k->at = 0;
	}
	if (k->size - k->len < want) {
		size_t size = k->size ? k->size : 4096;

		while (size - k->len < want)
			size *= 2;
		k->data = xrealloc(k->data, size);
		k->size = size;
	}
	return k->data + k->at + k->len;
}

void replay_buffer_grew(struct replay_buffer *k, size_t n)
{
	k->len += n;
}

const uint8_t *replay_buffer_at(const struct replay_buffer *k, size_t n)
{
	assert(n <= k->len);
	return k->data + k->at + n;
}

/* The pipe holds exactly what was counted into it: reading it never waits and never fails. */
static void pull(struct replay_buffer *k, size_t n)
{
	uint8_t *to = replay_buffer_space(k, n);

	while (n > 0) {
		ssize_t got = read(k->pipe[0], to, n);

		assert(got > 0);
		to += got;
		n -= (size_t)got;
		k->len += (size_t)got;
		k->piped -= (size_t)got;
	}
}

void replay_buffer_pull(struct replay_buffer *k)
{
	if (k->piped > 0)
		pull(k, k->piped);
}

bool replay_buffer_widen(struct replay_buffer *k)
{
	if (k->pipe[0] >= 0)
		return true;
	if (k->null < 0)
		k->null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (k->null < 0 || pipe2(k->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
		return false;
	if (fcntl(k->pipe[1], F_SETPIPE_SZ, REPLAY_MAX) >= 0)
		return true;
	replay_buffer_unpipe(k);
	return false;
}

void replay_buffer_unpipe(struct replay_buffer *k)
{
	replay_buffer_pull(k);
	close_fd(&k->pipe[0]);
	close_fd(&k->pipe[1]);
	k->pipe[0] = k->pipe[1] = -1;
}

/* Where pages cannot be thrown away as they are, they take the long way. */
static void throw_away(struct replay_buffer *k, size_t n)
{
	while (n > 0) {
		ssize_t gone = splice(k->pipe[0], NULL, k->null, NULL, n, SPLICE_F_NONBLOCK);

		if (gone <= 0) {
			pull(k, n);
			k->len = 0;
			return;
		}
		n -= (size_t)gone;
		k->piped -= (size_t)gone;
	}
}

void replay_buffer_drop(struct replay_buffer *k, size_t n)
{
	assert(n <= replay_buffer_len(k));
	if (n >= k->len) {
		size_t piped = n - k->len;

		k->at = k->len = 0;
		throw_away(k, piped);
		return;
	}
	k->at += n;
	k->len -= n;
}

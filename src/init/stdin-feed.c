#include "init/stdin-feed.h"

#include <errno.h>
#include <unistd.h>

#include "proto/frame.h"

#define FEED_MAX   (2UL << 20) /* that we hold for a command that does not read */
#define TAKEN_STEP (64 * 1024) /* before we say that it was taken */

struct stdin_feed stdin_feed_make(void)
{
	return (struct stdin_feed){ .bytes = buf_make(FEED_MAX + FRAME_PAYLOAD_MAX + 1) };
}

static void fd_end(int *fd)
{
	close_fd(fd);
	*fd = -1;
}

void stdin_feed_write(struct stdin_feed *f, int *fd, bool later)
{
	while (*fd >= 0 && f->bytes.len > 0) {
		ssize_t n = write(*fd, f->bytes.data, f->bytes.len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			fd_end(fd); /* the command has closed its end */
			continue;
		}
		buf_drop(&f->bytes, (size_t)n);
		f->taken += (uint32_t)n;
	}
	if (later)
		return;
	if (*fd < 0) {
		f->taken += (uint32_t)f->bytes.len;
		buf_clear(&f->bytes);
	} else if (f->ended) {
		fd_end(fd);
	}
}

void stdin_feed_add(struct stdin_feed *f, struct bytes more, bool open)
{
	if (f->ended || !open || more.len == 0)
		f->taken += (uint32_t)more.len;
	else
		buf_add(&f->bytes, more.data, more.len);
}

/* So that no more is on its way than we can hold. */
bool stdin_feed_can_take(const struct stdin_feed *f)
{
	return f->bytes.len < FEED_MAX;
}

bool stdin_feed_tells(const struct stdin_feed *f)
{
	return f->taken >= TAKEN_STEP || (f->taken > 0 && f->bytes.len == 0);
}

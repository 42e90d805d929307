#include "node/init-socket.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/guest.h"
#include "lib/file.h"
#include "node/node.h"
#include "node/process.h"
#include "proto/frame.h"

#define BACKLOG  1024
#define RETRY_MS 5
#define SHARE    ".berth/sock" /* image/rootfs makes it in every image */

static struct sockaddr_un address(int fd, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	/* Through the descriptor: the real path may be longer than the 108 bytes there are. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d%s%s", fd, name ? "/" : "",
		 name ? name : "");
	return a;
}

int init_socket_listen(struct allocation *a, int *ret, struct err *e)
{
	cleanup(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = address(a->dirfd, "init.sock");

	if (fd < 0)
		return err_sys(e, errno, "socket");
	(void)unlinkat(a->dirfd, "init.sock", 0); /* of an attempt that was cut short */
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, errno, "listen for the init of %s", a->name);
	*ret = take_fd(fd);
	return 0;
}

/* Below the sandbox's own disk, and nowhere a guest could have pointed it to. */
static int open_inside(const struct allocation *a, const char *name, uint64_t flags)
{
	struct open_how how = { .flags = flags | O_PATH | O_NOFOLLOW | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS };
	char path[ALLOCATION_NAME_SIZE + 64];

	snprintf(path, sizeof(path), "%s/%s", a->name, name);
	return (int)syscall(SYS_openat2, a->node->pool.sandboxes, path, &how, sizeof(how));
}

int init_socket_share(const struct allocation *a, struct err *e)
{
	cleanup(close_fd) int fd = open_inside(a, SHARE, O_DIRECTORY);

	return fd < 0 ? err_sys(e, errno, "%s of %s", SHARE, a->name) : 0;
}

/* What the guest bound, and nothing it could have put in its place. */
static int open_bound(const struct allocation *a, int *ret, struct err *e)
{
	cleanup(close_fd) int fd = open_inside(a, SHARE "/init", 0);
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_BUSY, "the init of %s is not up yet", a->name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, errno, "open the init socket of %s", a->name);
	if (!S_ISSOCK(st.st_mode))
		return err_set(e, ERR_DENIED, "the init socket of %s was replaced", a->name);
	*ret = take_fd(fd);
	return 0;
}

int init_socket_connect(const struct allocation *a, int *ret, struct err *e)
{
	cleanup(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	cleanup(close_fd) int bound = -1;
	struct sockaddr_un at = address(a->dirfd, "init.sock");

	if (fd < 0)
		return err_sys(e, errno, "socket");
	if (!a->runtime->passes_socket) {
		if (open_bound(a, &bound, e) < 0)
			return -1;
		at = address(bound, NULL);
	}
	if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
		if (errno == ECONNREFUSED || errno == EAGAIN)
			return err_set(e, ERR_BUSY, "the init of %s does not take connections",
				       a->name);
		return err_sys(e, errno, "connect to the init of %s", a->name);
	}
	*ret = take_fd(fd);
	return 0;
}

int init_socket_understands(const struct allocation *a, struct err *e)
{
	enum guest_status status = guest_compare(a->protocol, FRAME_VERSION);
	char theirs[GUEST_VERSION_SIZE], ours[GUEST_VERSION_SIZE];

	if (status == GUEST_CURRENT || status == GUEST_DIFFERS)
		return 0;
	err_set(e, ERR_UNSUPPORTED, "the init of %s speaks version %s of our protocol, and we %s",
		a->spec.sandbox, guest_version_text(a->protocol, theirs),
		guest_version_text(FRAME_VERSION, ours));
	return err_fix(e, "Put it to sleep and use it again: its files stay, and it wakes with "
			  "an init of this version.");
}

/* One conversation: connect, HELLO, HELLO. Tried again until the deadline. */
struct hello {
	struct allocation *a;
	int fd;
	uv_poll_t poll; /* of fd, while there is one */
	bool polling;
	uv_timer_t timer;
	uint64_t until;
	struct err why; /* the last failure */
	void (*done)(struct allocation *a, const struct err *why);
};

static void on_hello_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_poll_closed(uv_handle_t *handle)
{
	struct hello *h = handle->data;

	uv_close((uv_handle_t *)&h->timer, on_hello_closed);
}

static void close_poll(struct hello *h, uv_close_cb then)
{
	uv_poll_stop(&h->poll);
	close(h->fd);
	uv_close((uv_handle_t *)&h->poll, then);
}

static void hello_end(struct hello *h, const struct err *why)
{
	struct allocation *a = h->a;
	void (*done)(struct allocation *, const struct err *) = h->done;
	struct err copy = why ? *why : (struct err){ 0 };

	uv_timer_stop(&h->timer);
	if (h->polling)
		close_poll(h, on_poll_closed);
	else
		uv_close((uv_handle_t *)&h->timer, on_hello_closed);
	done(a, why ? &copy : NULL);
}

static void on_hello_timer(uv_timer_t *timer);

static void on_hung_up_closed(uv_handle_t *handle)
{
	struct hello *h = handle->data;

	h->polling = false;
	uv_timer_start(&h->timer, on_hello_timer, RETRY_MS, 0);
}

/* An init that ends closes its files before its end can be seen: the next attempt tells. */
static void hello_hung_up(struct hello *h)
{
	err_set(&h->why, ERR_BUSY, "init hung up");
	uv_timer_stop(&h->timer);
	close_poll(h, on_hung_up_closed);
}

static void on_hello_answer(uv_poll_t *poll, int status, int events)
{
	struct hello *h = poll->data;
	uint8_t data[FRAME_HEAD + 4];
	struct frame f;
	ssize_t n;

	(void)status, (void)events;
	n = recv(h->fd, data, sizeof(data), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		return hello_hung_up(h);
	if (n == (ssize_t)sizeof(data) &&
	    frame_next((struct bytes){ data, (size_t)n }, &f, &h->why) > 0 &&
	    f.type == FRAME_HELLO && frame_u32(&f, &h->a->protocol, &h->why) == 0)
		return hello_end(h, init_socket_understands(h->a, &h->why) < 0 ? &h->why : NULL);
	err_set(&h->why, ERR_INTERNAL, "init answered with something else");
	hello_end(h, &h->why);
}

static int hello_send(struct hello *h, struct err *e)
{
	cleanup(buf_done) struct buf out = buf_make(64);

	if (init_socket_connect(h->a, &h->fd, e) < 0)
		return -1;
	frame_add_u32(&out, FRAME_HELLO, FRAME_VERSION);
	if (send(h->fd, out.data, out.len, MSG_NOSIGNAL) != (ssize_t)out.len) {
		close(h->fd);
		return err_set(e, ERR_BUSY, "init hung up");
	}
	return 0;
}

static void on_hello_timer(uv_timer_t *timer)
{
	struct hello *h = timer->data;

	if (h->polling || h->a->waiting || uv_now(timer->loop) >= h->until) {
		if (uv_now(timer->loop) >= h->until) /* not there, or there and mute */
			(void)step_too_long(&h->a->node->steps, STEP_HELLO, &h->why);
		hello_end(h, &h->why);
		return;
	}
	if (hello_send(h, &h->why) < 0) {
		if (h->why.code != ERR_BUSY || process_is_over(h->a))
			return hello_end(h, &h->why);
		uv_timer_start(timer, on_hello_timer, RETRY_MS, 0);
		return;
	}
	uv_poll_init(timer->loop, &h->poll, h->fd);
	h->poll.data = h;
	h->polling = true;
	uv_poll_start(&h->poll, UV_READABLE | UV_DISCONNECT, on_hello_answer);
	uv_timer_start(timer, on_hello_timer, h->until - uv_now(timer->loop), 0);
}

void init_socket_hello(struct allocation *a,
		       void (*done)(struct allocation *a, const struct err *why))
{
	struct hello *h = xcalloc(1, sizeof(*h));

	h->a = a;
	h->done = done;
	h->until = uv_now(&a->node->loop) + a->node->steps.ms[STEP_HELLO];
	uv_timer_init(&a->node->loop, &h->timer);
	h->timer.data = h;
	uv_timer_start(&h->timer, on_hello_timer, 0, 0);
}

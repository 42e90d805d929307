#include "cli/reattach.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cli/exit-code.h"
#include "cli/follow.h"
#include "lib/errno-map.h"

#define STDIN_MAX (64UL * 1024)

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static bool on_tick(void *arg, uint64_t unneeded)
{
	const struct reattach *r = arg;

	(void)unneeded;
	if (is_readable(r->stop->fd) || r->input_end || r->held.len)
		return true;
	return r->input && is_readable(STDIN_FILENO);
}

static int on_put(void *arg, int fd, struct bytes b, struct err *e)
{
	struct reattach *r = arg;

	return r->put(r->arg, fd, b, e);
}

static void add_path(struct buf *path, const struct reattach *r, const char *verb)
{
	buf_adds(path, "/v1/sandboxes/");
	fetch_escape(path, r->sandbox);
	buf_adds(path, "/execs/");
	fetch_escape(path, r->exec);
	buf_adds(path, verb);
}

static int post_signal(const struct reattach *r, const struct context *c, const char *name,
		       struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX), body = buf_make(256);

	add_path(&path, r, "/kill");
	json_open(&body, '{');
	json_str(&body, "signal", name);
	buf_adds(&body, "}");
	return client_call(c, "POST", buf_str(&path), buf_str(&body), &reply, e);
}

/* The first goes to the command; after the second we do not wait for it. */
static int pass_interrupt(struct reattach *r, const struct context *c, struct err *e)
{
	struct err why;

	if (interrupt_take(r->stop))
		r->owed = r->stop->last;
	if (!r->owed)
		return 0;
	if (r->stop->count > 1) {
		r->leave = EXIT_SIGNAL + r->owed;
		if (post_signal(r, c, "KILL", e) < 0)
			return err_wrap(e, "exec %.63s may go on", r->exec);
		return err_set(e, ERR_TIMEOUT, "interrupted; the command is killed");
	}
	/* A server that is away is told later; a command that has ended need not be. */
	if (post_signal(r, c, sigabbrev_np(r->owed), &why) == 0 || why.code != ERR_BUSY)
		r->owed = 0;
	return 0;
}

static int post_input(const struct reattach *r, const struct context *c, const char *data,
		      size_t len, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = { .method = "POST", .body_fd = -1, .body = data, .body_len = len };

	q.content_type = "application/octet-stream";
	add_path(&path, r, len ? "/stdin" : "/stdin?end=1");
	if (client_fetch(c, buf_str(&path), &q, &reply, e) == 0 || e->code == ERR_CONFLICT)
		return 0; /* or it has ended, and the rest of its input with it */
	return -1;
}

static void read_input(struct reattach *r)
{
	char chunk[STDIN_MAX];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n > 0) {
		buf_add(&r->held, chunk, (size_t)n);
		return;
	}
	r->input = n < 0 && (errno == EINTR || errno == EAGAIN);
	r->input_end = !r->input;
}

/*
 * A server that took nothing says so, and is sent it again. After any other failure it may have
 * arrived or not: then nothing more can be promised.
 */
static int pass_held(struct reattach *r, const struct context *c, struct err *e)
{
	if (post_input(r, c, r->held.data, r->held.len, e) == 0) {
		buf_clear(&r->held);
		return 0;
	}
	if (!e->reason || strcmp(e->reason, REASON_NOT_TAKEN) != 0)
		return -1;
	follow_pause();
	return 0;
}

static int pass_input(struct reattach *r, const struct context *c, struct err *e)
{
	struct err why;

	if (!r->held.len && r->input && is_readable(STDIN_FILENO))
		read_input(r);
	if (r->held.len)
		return pass_held(r, c, e);
	if (!r->input_end)
		return 0;
	if (post_input(r, c, "", 0, &why) == 0 || why.code != ERR_BUSY)
		r->input_end = false; /* refused: the stream says why, if it matters */
	else
		follow_pause(); /* again in the next round */
	return 0;
}

int reattach(struct reattach *r, const struct context *c, struct err *e)
{
	cleanup(follow_done) struct follow f = { .sandbox = r->sandbox,
						 .exec = r->exec,
						 .on = true,
						 .tick = on_tick,
						 .put = on_put,
						 .arg = r,
						 .position = r->position };
	bool away = false;

	for (int again = 0; again < FOLLOW_AGAIN_MAX; again = away ? again + 1 : 0) {
		int rc = follow_once(&f, c, e);

		r->exit = f.exit;
		if (f.failed || f.ended)
			return f.failed ? -1 : 0;
		if (rc < 0 && e->code == ERR_NOT_FOUND && !r->started)
			return 1;
		away = rc < 0 && !f.heard && (e->code == ERR_BUSY || f.broke);
		if (rc < 0 && !f.heard && !away && e->code != ERR_TIMEOUT)
			return -1;
		if (pass_interrupt(r, c, e) < 0 || (!away && pass_input(r, c, e) < 0))
			return -1;
		if (away || (rc < 0 && e->code != ERR_TIMEOUT))
			follow_pause();
	}
	err_set(e, ERR_BUSY, "the server did not come back");
	return err_fix(e, "The command may go on: berth logs -f %.60s %.63s", r->sandbox, r->exec);
}

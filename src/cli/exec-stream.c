#include "cli/exec-stream.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/exit-code.h"
#include "cli/reattach.h"
#include "cli/say.h"
#include "lib/fetch.h"
#include "lib/id.h"
#include "lib/str.h"
#include "proto/frame.h"

#define IN_MAX        (2UL * 1024 * 1024)
#define OUT_MAX       (2UL * 1024 * 1024)
#define OUT_FULL      (256UL * 1024) /* read no more input before this much has gone */
#define STDIN_MAX     (64UL * 1024)

#define ASK_AGAIN_MAX 3 /* times, if a server was killed before it had begun the command */

struct pump {
	struct fetch_link *link;
	struct interrupt *stop;
	struct terminal *tty; /* or NULL */
	struct buf in, out;
	bool input;        /* standard input is still open */
	bool started;      /* the command runs */
	bool ended;        /* the server closes */
	bool broken;       /* the connection is; that says nothing about the command */
	bool exited;       /* `exit` is the command's end */
	bool mid_line;     /* what we wrote to standard error does not end one */
	uint64_t received; /* bytes of both outputs */
	uint64_t untaken;  /* bytes of standard input that may not have arrived */
	int leave;         /* our own exit status, for ends that are not the command's; 0: none */
	struct exec_exit exit;
};

static void pump_done(struct pump *p)
{
	fetch_link_close(&p->link);
	buf_done(&p->in);
	buf_done(&p->out);
}

static int send_some(struct pump *p, struct err *e)
{
	size_t sent = 0;

	if (p->out.len && fetch_link_send(p->link, p->out.data, p->out.len, &sent, e) < 0) {
		p->broken = true;
		return -1;
	}
	buf_drop(&p->out, sent);
	return 0;
}

/* The first goes to the command; after the second we do not wait for it. */
static int take_interrupt(struct pump *p, struct err *e)
{
	if (!interrupt_take(p->stop))
		return 0;
	if (p->stop->count > 1) {
		p->leave = EXIT_SIGNAL + p->stop->last;
		return err_set(e, ERR_TIMEOUT, "interrupted; the command is killed");
	}
	frame_add_u32(&p->out, FRAME_SIGNAL, (uint32_t)p->stop->last);
	return send_some(p, e);
}

/*
 * A reader of ours that is slow makes the command wait, but Ctrl-C still works: no more is
 * written at once than a pipe that poll() calls ready is sure to take.
 */
static int put(struct pump *p, int fd, struct bytes b, struct err *e)
{
	for (size_t at = 0; at < b.len;) {
		struct pollfd fds[] = { { .fd = fd, .events = POLLOUT },
					{ .fd = p->stop->fd, .events = POLLIN } };
		ssize_t n;

		if (poll(fds, array_len(fds), -1) < 0 && errno != EINTR)
			return err_sys(e, errno, "poll");
		if (fds[1].revents && take_interrupt(p, e) < 0)
			return -1;
		if (!fds[0].revents)
			continue;
		n = write(fd, b.data + at, b.len - at < PIPE_BUF ? b.len - at : PIPE_BUF);
		if (n < 0 && errno == EPIPE) /* as if the signal had ended us */
			p->leave = EXIT_SIGNAL + SIGPIPE;
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_sys(e, errno, "write the command's output");
		at += n > 0 ? (size_t)n : 0;
	}
	if (fd == STDERR_FILENO && b.len > 0)
		p->mid_line = b.data[b.len - 1] != '\n';
	return 0;
}

static int put_again(void *arg, int fd, struct bytes b, struct err *e)
{
	return put(arg, fd, b, e);
}

static int take_frame(struct pump *p, const struct frame *f, struct err *e)
{
	uint32_t n = 0;

	switch (f->type) {
	case FRAME_STDOUT:
	case FRAME_STDERR:
		p->received += f->payload.len;
		return put(p, f->type == FRAME_STDOUT ? STDOUT_FILENO : STDERR_FILENO, f->payload,
			   e);
	case FRAME_EXITED:
		if (exec_exit_decode(f->payload, &p->exit, e) < 0)
			return -1;
		p->exited = true;
		return 0;
	case FRAME_ERROR:
		frame_error(f, e);
		return -1;
	case FRAME_STARTED:
		p->started = true;
		return 0;
	case FRAME_TAKEN:
		if (frame_u32(f, &n, e) < 0)
			return -1;
		p->untaken -= n < p->untaken ? n : p->untaken;
		return 0;
	default:
		return err_set(e, ERR_INTERNAL, "the server sent a frame of type %d", (int)f->type);
	}
}

static int take_frames(struct pump *p, struct err *e)
{
	size_t at = 0;

	while (!p->exited) {
		struct bytes wire = { (const uint8_t *)buf_str(&p->in) + at, p->in.len - at };
		struct frame f;
		ssize_t used = wire.len ? frame_next(wire, &f, e) : 0;

		if (used < 0 || (used > 0 && take_frame(p, &f, e) < 0))
			return -1;
		if (used == 0)
			break;
		at += (size_t)used;
	}
	buf_drop(&p->in, at);
	return 0;
}

static int receive(struct pump *p, struct err *e)
{
	if (fetch_link_receive(p->link, &p->in, &p->ended, e) < 0) {
		p->broken = true;
		return -1;
	}
	if (buf_overflowed(&p->in))
		return err_set(e, ERR_TOO_LARGE, "the server sent too much at once");
	return take_frames(p, e);
}

static void read_input(struct pump *p)
{
	char chunk[STDIN_MAX];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n > 0) {
		frame_add(&p->out, FRAME_STDIN, chunk, (size_t)n);
		p->untaken += (uint64_t)n;
	} else if (n == 0 || (errno != EINTR && errno != EAGAIN)) {
		frame_add(&p->out, FRAME_STDIN_END, NULL, 0);
		p->input = false;
	}
}

static void send_size(struct pump *p)
{
	cleanup(buf_done) struct buf record = buf_make(64);
	struct exec_size size;

	if (!p->tty || !terminal_take_winch(p->tty))
		return;
	terminal_size(&size);
	exec_size_encode(&record, &size);
	frame_add(&p->out, FRAME_RESIZE, record.data, record.len);
}

static bool wants_input(const struct pump *p)
{
	return p->input && p->started && p->out.len < OUT_FULL;
}

static int pump_loop(struct pump *p, struct err *e)
{
	if (receive(p, e) < 0)
		return -1;
	while (!p->exited && !p->ended) {
		struct pollfd fds[] = {
			{ .fd = fetch_link_fd(p->link), .events = POLLIN },
			{ .fd = p->stop->fd, .events = POLLIN },
			{ .fd = wants_input(p) ? STDIN_FILENO : -1, .events = POLLIN },
			{ .fd = p->tty ? p->tty->winch : -1, .events = POLLIN },
		};

		if (p->out.len)
			fds[0].events |= POLLOUT;
		if (poll(fds, array_len(fds), -1) < 0 && errno != EINTR)
			return err_sys(e, errno, "poll");
		if (take_interrupt(p, e) < 0)
			return -1;
		if (fds[2].revents)
			read_input(p);
		send_size(p);
		if (send_some(p, e) < 0 || receive(p, e) < 0)
			return -1;
	}
	p->broken = !p->exited;
	if (!p->exited)
		return err_set(e, ERR_INTERNAL, "the server closed before the command had ended");
	return 0;
}

static int open_link(struct pump *p, const struct context *c, const char *sandbox, struct err *e)
{
	cleanup(fetch_reply_done) struct fetch_reply reply = { 0 };
	cleanup(buf_done) struct buf url = buf_make(CLIENT_URL_MAX);
	struct fetch_request q = { .method = "POST", .key = c->key, .body_fd = -1 };

	buf_addf(&url, "%s/v1/sandboxes/", c->url);
	fetch_escape(&url, sandbox);
	buf_adds(&url, "/exec");
	q.url = buf_str(&url);
	if (fetch_upgrade(&q, "berth-exec", &p->link, &reply, e) < 0)
		return -1;
	return p->link ? 0 : client_error(reply.status, &reply.body, e);
}

/* The server is not there: the command's record and output are asked for by its id. */
static int go_on(struct pump *p, const struct context *c, const char *sandbox,
		 const struct exec_request *q, struct err *e)
{
	struct reattach r = {
		.sandbox = sandbox,
		.exec = q->id,
		.position = p->received,
		.started = p->started,
		.stop = p->stop,
		.input = p->input,
		.input_end = (q->flags & EXEC_STDIN) && !p->input,
		.put = put_again,
		.arg = p,
	};
	int rc;

	if (p->untaken) {
		err_set(e, ERR_BUSY, "the server closed while the command was given its input");
		return err_fix(e, "It goes on without the rest: berth logs -f %.60s %.63s", sandbox,
			       q->id);
	}
	r.held = buf_make(STDIN_MAX);
	rc = reattach(&r, c, e);
	buf_done(&r.held);
	p->exit = r.exit;
	p->leave = p->leave ? p->leave : r.leave;
	return rc;
}

/* 0: p->exit says how it ended. A terminal is not taken up again: what it showed is gone. */
static int pump_run(struct pump *p, const struct context *c, const char *sandbox,
		    const struct exec_request *q, struct err *e)
{
	cleanup(buf_done) struct buf wire = buf_make((size_t)FRAME_PAYLOAD_MAX);
	int rc = 1;

	exec_request_encode(&wire, q);
	if (buf_overflowed(&wire))
		return err_set(e, ERR_TOO_LARGE, "the command line is too long");
	/* Under the same id it begins once, however often it is asked for. */
	for (int again = 0; rc > 0 && again < ASK_AGAIN_MAX; again++) {
		fetch_link_close(&p->link);
		buf_clear(&p->in);
		buf_clear(&p->out);
		p->ended = false;
		frame_add(&p->out, FRAME_EXEC, wire.data, wire.len);
		if (open_link(p, c, sandbox, e) == 0 && pump_loop(p, e) == 0)
			return 0;
		if (!p->broken || p->tty)
			return -1;
		rc = go_on(p, c, sandbox, q, e);
	}
	return rc > 0 ? -1 : rc;
}

/* Did the signal that ended it come from the keys or the kill of our own user? */
static bool is_own(const struct pump *p)
{
	return p->exit.kind == EXEC_SIGNALLED &&
	       (p->stop->count || (p->tty && p->exit.signum == SIGINT));
}

/* With --json: the record as the last line of standard error, behind what is the command's own. */
static void tell_record(const struct pump *p, const struct context *c, const char *sandbox,
			const char *id)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	struct err e;

	buf_adds(&path, "/v1/sandboxes/");
	fetch_escape(&path, sandbox);
	buf_addf(&path, "/execs/%s", id);
	if (p->mid_line)
		say_beside("\n", 1);
	if (client_call(c, "GET", buf_str(&path), NULL, &reply, &e) < 0)
		return say_error(&e, true);
	buf_adds(&reply.text, "\n");
	say_beside(buf_str(&reply.text), reply.text.len);
}

/* What a bare exit status does not say. */
static void tell_end(const struct pump *p, const struct context *c, const char *sandbox,
		     const char *id)
{
	char reason[EXIT_REASON_SIZE];

	if (c->json)
		tell_record(p, c, sandbox, id);
	else if (exit_reason(&p->exit, reason) && !is_own(p))
		say("%s", reason);
	if (!c->json && p->exit.kind == EXEC_LOST)
		say("`berth show %s` says what became of it", sandbox);
}

static int pump_on(const struct context *c, const char *sandbox, struct exec_request *request,
		   struct interrupt *stop, struct terminal *tty, struct err *e)
{
	cleanup(pump_done) struct pump p = { .stop = stop,
					     .tty = tty,
					     .input = request->flags & EXEC_STDIN };

	p.in = buf_make(IN_MAX);
	p.out = buf_make(OUT_MAX);
	if (!request->id[0]) {
		memcpy(request->id, "ex_", 3);
		id_random(request->id + 3, ID_RANDOM_CHARS);
	}
	if (pump_run(&p, c, sandbox, request, e) < 0)
		return p.leave ? p.leave : exit_refused(e, c->json);
	if (tty)
		terminal_close(tty); /* so that what follows is a line of its own */
	tell_end(&p, c, sandbox, request->id);
	return exit_code(&p.exit);
}

int exec_stream_command(const struct context *c, const char *sandbox, const struct exec_options *o,
			struct exec_request *request, struct interrupt *stop, struct err *e)
{
	cleanup(terminal_close) struct terminal tty = { .winch = -1 };

	if (!o->tty)
		return pump_on(c, sandbox, request, stop, NULL, e);
	if (terminal_open(&tty, e) < 0)
		return -1;
	return pump_on(c, sandbox, request, stop, &tty, e);
}

/* A shell takes one line: the words as they would be typed. */
static int shell_line(const char *shell, char *const *argv, size_t argc, struct exec_request *ret,
		      struct err *e)
{
	cleanup(buf_done) struct buf line = buf_make(EXEC_BYTES_MAX);

	if (!str_copy(ret->shell, sizeof(ret->shell), shell))
		return err_set(e, ERR_INVALID, "--shell: the name is too long");
	for (size_t i = 0; i < argc; i++)
		buf_addf(&line, "%s%s", i ? " " : "", argv[i]);
	if (buf_overflowed(&line))
		return err_set(e, ERR_TOO_LARGE, "the command line is too long");
	strv_add(&ret->argv, buf_str(&line));
	return 0;
}

/* The terminal is ours: its kind and size, and every key goes there. */
static void add_terminal(struct exec_request *ret)
{
	const char *term = getenv("TERM");
	char var[128] = "TERM=xterm-256color";

	if (term && strlen(term) < sizeof(var) - 5)
		memcpy(var + 5, term, strlen(term) + 1);
	strv_add(&ret->env, var);
	ret->flags = EXEC_STDIN | EXEC_PTY;
	terminal_size(&ret->size);
}

int exec_stream_request(const struct exec_options *o, char *const *argv, size_t argc,
			struct exec_request *ret, struct err *e)
{
	ret->flags = o->interactive || !isatty(STDIN_FILENO) ? EXEC_STDIN : 0;
	if (o->tty)
		add_terminal(ret);
	ret->timeout_ms = o->timeout_ms;
	if (o->cwd && !str_copy(ret->cwd, sizeof(ret->cwd), o->cwd))
		return err_set(e, ERR_INVALID, "-w: the path is too long");
	if (o->shell && shell_line(o->shell, argv, argc, ret, e) < 0)
		return -1;
	for (size_t i = 0; !o->shell && i < argc; i++)
		strv_add(&ret->argv, argv[i]);
	for (size_t i = 0; i < o->env.len; i++) {
		if (!strchr(o->env.items[i], '='))
			return err_set(e, ERR_INVALID, "-e %.60s: not NAME=VALUE", o->env.items[i]);
		strv_add(&ret->env, o->env.items[i]);
	}
	return exec_request_check(ret, e);
}

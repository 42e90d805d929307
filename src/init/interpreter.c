#include "init/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOTES_BYTES (1 << 20)

/* Both read the runner from descriptor 6 and are then nothing but it. */
#define PYTHON_BOOT "exec(compile(open(6, 'rb').read(), '<berth>', 'exec'), {'__name__': 'berth'})"
#define NODE_BOOT \
	"require('vm').compileFunction(require('fs').readFileSync(6, 'utf8'), " \
	"['require', 'load'], { filename: 'berth' })(require, (m) => import(m))"

struct language {
	const char *programs[3]; /* the first that is there */
	const char *args[5];
	const unsigned char *runner;
	const size_t *runner_len;
	const char *wants; /* for people */
};

static const struct language languages[CONTEXT_LANGUAGE_COUNT] = {
	[CONTEXT_PYTHON] = { { "python3", "python" },
			     { "-X", "utf8", "-c", PYTHON_BOOT },
			     runner_python,
			     &runner_python_len,
			     "python3" },
	[CONTEXT_JAVASCRIPT] = { { "node", "nodejs" },
				 { "-e", NODE_BOOT, "javascript" },
				 runner_node,
				 &runner_node_len,
				 "node" },
	[CONTEXT_TYPESCRIPT] = { { "node", "nodejs" },
				 { "-e", NODE_BOOT, "typescript" },
				 runner_node,
				 &runner_node_len,
				 "node" },
};

struct ends {
	int requests[2], notes[2], done[2], script;
};

static void ends_close(struct ends *x)
{
	for (int i = 0; i < 2; i++) {
		close_fd(&x->requests[i]);
		close_fd(&x->notes[i]);
		close_fd(&x->done[i]);
	}
	close_fd(&x->script);
}

static int script_open(const struct language *l)
{
	int fd = memfd_create("berth-runner", MFD_CLOEXEC);

	if (fd >= 0 && (write(fd, l->runner, *l->runner_len) != (ssize_t)*l->runner_len ||
			lseek(fd, 0, SEEK_SET) < 0)) {
		close_fd(&fd);
		fd = -1;
	}
	return fd;
}

static int ends_open(struct ends *x, const struct language *l)
{
	if (pipe2(x->requests, O_CLOEXEC) < 0 || pipe2(x->notes, O_CLOEXEC) < 0 ||
	    pipe2(x->done, O_CLOEXEC) < 0)
		return -1;
	(void)fcntl(x->notes[0], F_SETPIPE_SZ, NOTES_BYTES);
	(void)fcntl(x->requests[1], F_SETFL, O_NONBLOCK);
	(void)fcntl(x->notes[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(x->done[0], F_SETFL, O_NONBLOCK);
	x->script = script_open(l);
	return x->script < 0 ? -1 : 0;
}

static void command_of(const struct language *l, const char *program,
		       const struct context_request *q, struct exec_request *ret)
{
	memcpy(ret->cwd, q->cwd, sizeof(ret->cwd));
	strv_add(&ret->argv, program);
	for (size_t i = 0; i < array_len(l->args) && l->args[i]; i++)
		strv_add(&ret->argv, l->args[i]);
	for (size_t i = 0; i < q->env.len; i++)
		strv_add(&ret->env, q->env.items[i]);
}

static int start_one(const struct language *l, const struct context_request *q, struct tree *t,
		     const struct command_more *more, struct command *ret, struct err *e)
{
	int n = -1;

	for (size_t i = 0; n < 0 && l->programs[i]; i++) {
		cleanup(exec_request_done) struct exec_request ask = { 0 };

		command_of(l, l->programs[i], q, &ask);
		n = command_start_with(&ask, t, more, ret, e);
		if (n < 0 && e->code != ERR_NOT_FOUND)
			return -1;
	}
	if (n < 0) {
		err_set(e, ERR_UNSUPPORTED, "the sandbox's image has no %s to run %s with",
			l->wants, context_language_name(q->language));
		return err_fix(e, "Use an image with %s on its PATH.", l->wants);
	}
	return 0;
}

int interpreter_start(struct interpreter *i, const struct context_request *q, struct tree *t,
		      struct err *e)
{
	cleanup(ends_close) struct ends x = { { -1, -1 }, { -1, -1 }, { -1, -1 }, -1 };
	const struct language *l = &languages[q->language];
	struct command_more more = { .count = 4 };

	if (ends_open(&x, l) < 0)
		return err_sys(e, errno, "make pipes");
	more.fds[0] = x.requests[0];
	more.fds[1] = x.notes[1];
	more.fds[2] = x.done[1];
	more.fds[3] = x.script;
	if (start_one(l, q, t, &more, &i->cmd, e) < 0)
		return -1;
	i->requests = take_fd(x.requests[1]);
	i->notes = take_fd(x.notes[0]);
	i->done = take_fd(x.done[0]);
	return 0;
}

void interpreter_close(struct interpreter *i)
{
	close_fd(&i->cmd.in);
	close_fd(&i->cmd.out);
	close_fd(&i->cmd.err);
	close_fd(&i->requests);
	close_fd(&i->notes);
	close_fd(&i->done);
	*i = (struct interpreter){ { 0, -1, -1, -1 }, -1, -1, -1 };
}

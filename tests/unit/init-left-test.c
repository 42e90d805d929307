/* What execs left running, and what is said of it when a process of init's was killed. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "init-world.h"
#include "lib/errno-map.h"
#include "proto/context.h"
#include "proto/frame.h"
#include "proto/shell.h"
#include "proto/writer.h"
#include "test.h"

/* As on gVisor: there is no subreaper. */
static void without_subreaper(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PR_SET_CHILD_SUBREAPER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { array_len(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(126);
}

/* One that has ended: the process of init's that has run it, and what it left. */
struct ended {
	pid_t server, left;
};

/* Its record is safe: the process that ran it stays only for what was left. */
static void acknowledge(int fd, const struct result *r)
{
	cleanup(buf_done) struct buf ack = buf_make(64), frame = buf_make(64);

	exec_ack_encode(&ack, &(struct exec_ack){ { r->out.len, r->err.len }, true });
	frame_add(&frame, FRAME_ACK, ack.data, ack.len);
	send_buf(fd, &frame);
}

static struct ended leave_with(const char *id)
{
	struct exec_request q;
	struct result *r = result_make();
	char script[256];
	struct ended x;
	int fd;

	/* While it is being executed it has no environment to be known by. */
	snprintf(script, sizeof(script),
		 "setsid sleep %s >/dev/null 2>&1 & "
		 "until grep -q sleep /proc/$!/comm && grep -q . /proc/$!/environ; do :; done; "
		 "echo $PPID $!",
		 mark());
	q = shell(script);
	snprintf(q.id, sizeof(q.id), "%s", id);
	fd = exec_begin(&q);
	while (!r->exited && result_read(r, fd))
		;
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	acknowledge(fd, r);
	close(fd);
	CHECK(sscanf(buf_str(&r->out), "%d %d", &x.server, &x.left) == 2 && x.server > 1);
	return x;
}

/* Until it was reaped: then init knows. */
static void kill_server(pid_t server)
{
	CHECK(kill(server, SIGKILL) == 0);
	for (int i = 0; i < 1000 && kill(server, 0) == 0; i++)
		usleep(10000);
	CHECK(kill(server, 0) < 0);
}

static void check_unknown(const char *id)
{
	struct left l = ask_left(id);

	CHECK(l.failed);
	CHECK_INT(l.e.code, ERR_CONFLICT);
	CHECK(l.e.reason && strcmp(l.e.reason, REASON_LEFT_UNKNOWN) == 0);
}

TEST(what_cannot_be_seen_is_not_said_to_be_gone)
{
	struct ended torn;

	init_start_as(without_subreaper);
	(void)leave_with("kept");
	torn = leave_with("torn");
	wait_count(mark(), 2);
	kill_server(torn.server);
	check_unknown("torn");
	check_unknown(EXEC_ID_NONE);
	CHECK(run_with_id("later", "true")); /* it may run beside it */
	CHECK_INT(kill_left("never"), 0);
	CHECK(kill_left("kept") >= 1); /* another one's process is there, and sees */
	check_unknown("");
	wait_count(mark(), 1);
	CHECK(kill(torn.left, SIGKILL) == 0); /* init cannot find it */
	wait_count(mark(), 0);
	check_unknown("torn"); /* init has not seen that */
	init_stop();
}

/* Its first answer; `wire` is what it points into. */
static struct frame ask(enum frame_type type, const struct buf *payload, struct buf *wire)
{
	cleanup(buf_done) struct buf out = buf_make(FRAME_HEAD + FRAME_PAYLOAD_MAX);
	struct frame f = { 0 };
	struct err e;
	char chunk[512];
	int fd = dial(), n = 0;

	frame_add(&out, type, payload->data, payload->len);
	send_buf(fd, &out);
	buf_clear(wire);
	while (n == 0) {
		ssize_t got = read(fd, chunk, sizeof(chunk));

		CHECK(got > 0);
		buf_add(wire, chunk, (size_t)got);
		n = (int)frame_next((struct bytes){ (void *)wire->data, wire->len }, &f, &e);
	}
	CHECK(n > 0);
	close(fd);
	return f;
}

static pid_t parent_of(uint32_t pid)
{
	char path[64], line[256];
	int parent = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/status", pid);
	f = fopen(path, "re");
	CHECK(f);
	while (fgets(line, sizeof(line), f) && sscanf(line, "PPid: %d", &parent) != 1)
		;
	fclose(f);
	CHECK(parent > 1);
	return parent;
}

static void check_not_gone(const struct frame *f)
{
	struct err e = { 0 };

	CHECK_INT(f->type, FRAME_ERROR);
	frame_error(f, &e);
	CHECK_INT(e.code, ERR_CONFLICT);
	CHECK(e.reason && strcmp(e.reason, REASON_LEFT_UNKNOWN) == 0);
}

TEST(a_shell_whose_processes_cannot_be_seen_is_not_said_to_be_gone)
{
	cleanup(buf_done) struct buf out = buf_make(8192), wire = buf_make(65536);
	struct shell_request q = { .name = "torn", .cwd = "/" };
	struct shell_state state = { 0 };
	struct frame f;
	struct err e;

	init_start_as(without_subreaper);
	shell_request_encode(&out, &q);
	f = ask(FRAME_SHELL, &out, &wire);
	CHECK_INT(f.type, FRAME_SHELL_STATE);
	CHECK_OK(shell_state_decode(f.payload, &state, &e), &e);
	kill_server(parent_of(state.pid));
	buf_clear(&out);
	writer_str(&out, "torn");
	f = ask(FRAME_SHELL_END, &out, &wire);
	check_not_gone(&f);
	f = ask(FRAME_SHELL_ASK, &out, &wire);
	CHECK_INT(f.type, FRAME_ERROR);
	frame_error(&f, &e);
	CHECK_INT(e.code, ERR_NOT_FOUND);
	init_stop();
}

TEST(a_context_whose_processes_cannot_be_seen_is_not_said_to_be_gone)
{
	cleanup(buf_done) struct buf out = buf_make(8192), wire = buf_make(65536);
	struct context_request q = { CONTEXT_RUN, CONTEXT_PYTHON, "torn", 0, "", { 0 } };
	struct frame f;
	struct err e;
	uint32_t pid;

	init_start_as(without_subreaper);
	context_request_encode(&out, &q);
	f = ask(FRAME_CONTEXT, &out, &wire);
	CHECK_INT(f.type, FRAME_STARTED);
	CHECK_OK(frame_u32(&f, &pid, &e), &e);
	kill_server(parent_of(pid));
	q.verb = CONTEXT_END;
	buf_clear(&out);
	context_request_encode(&out, &q);
	f = ask(FRAME_CONTEXT, &out, &wire);
	check_not_gone(&f);
	init_stop();
}

TEST(what_pid_1_saw_end_is_said_to_be_gone)
{
	struct ended torn;

	init_start();
	torn = leave_with("torn");
	wait_count(mark(), 1);
	CHECK(kill(torn.server, SIGKILL) == 0);
	(void)kill_left("torn"); /* whenever that is asked, it is so when it is said */
	CHECK_INT(count_with(mark()), 0);
	CHECK_INT(kill_left("torn"), 0);
	CHECK_INT(kill_left(""), 0);
	init_stop();
}

/* berthd sends the signal before it knows of the end, and then asks for what was left. */
TEST(a_kill_that_comes_as_its_command_has_ended_takes_nothing_from_the_count)
{
	cleanup(buf_done) struct buf frame = buf_make(64);
	struct exec_request q;
	struct result *r = result_make();
	char script[128];
	int fd;

	init_start();
	snprintf(script, sizeof(script), "setsid sleep %s >/dev/null 2>&1 &", mark());
	q = shell(script);
	snprintf(q.id, sizeof(q.id), "late");
	fd = exec_begin(&q);
	while (!r->exited && result_read(r, fd))
		;
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	frame_add_u32(&frame, FRAME_SIGNAL, SIGKILL);
	send_buf(fd, &frame);
	acknowledge(fd, r);
	close(fd);
	CHECK(kill_left("late") >= 1);
	CHECK_INT(count_with(mark()), 0);
	init_stop();
}

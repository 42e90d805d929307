/* Runs the real berth-init (BERTH_INIT) and speaks frames to it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "init-world.h"
#include "lib/file.h"
#include "lib/strv.h"
#include "lib/time.h"
#include "proto/exec.h"
#include "proto/frame.h"
#include "proto/writer.h"
#include "test.h"

TEST(hello_is_answered_with_the_version)
{
	cleanup(buf_done) struct buf frame = buf_make(64);
	uint8_t answer[64];
	struct frame f;
	struct err e;
	uint32_t version;
	ssize_t n;
	int fd;

	init_start();
	fd = dial();
	frame_add_u32(&frame, FRAME_HELLO, FRAME_VERSION);
	send_buf(fd, &frame);
	n = read(fd, answer, sizeof(answer));
	CHECK(n > 0 && frame_next((struct bytes){ answer, (size_t)n }, &f, &e) == n);
	CHECK_INT(f.type, FRAME_HELLO);
	CHECK_OK(frame_u32(&f, &version, &e), &e);
	CHECK_INT(version, FRAME_VERSION);
	CHECK_INT(init_stop(), 0);
}

TEST(exit_codes_and_signals_are_told_apart)
{
	struct result *r;

	init_start();
	r = run("exit 3");
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	CHECK_INT(r->exit.code, 3);
	CHECK(r->pid > 0 && r->exit.wall_us > 0 && r->exit.max_rss_kb > 0);
	r = run("exit 0");
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	CHECK_INT(r->exit.code, 0);
	r = run("kill -SEGV $$");
	CHECK_INT(r->exit.kind, EXEC_SIGNALLED);
	CHECK_INT(r->exit.signum, SIGSEGV);
	init_stop();
}

TEST(both_streams_are_byte_exact)
{
	struct result *r;

	init_start();
	r = run("printf 'a\\0b'; printf 'c\\0\\377' >&2");
	CHECK(r->out.len == 3 && memcmp(r->out.data, "a\0b", 3) == 0);
	CHECK(r->err.len == 3 && memcmp(r->err.data, "c\0\377", 3) == 0);
	r = run("head -c 10000000 /dev/zero | tr '\\0' x; head -c 3000000 /dev/zero >&2");
	CHECK_INT(r->out.len, 10000000);
	CHECK_INT(r->err.len, 3000000);
	for (size_t i = 0; i < r->out.len; i++)
		CHECK(r->out.data[i] == 'x');
	init_stop();
}

/* Write frames and read answers at once, as a peer with a loop would. */
static struct result *converse(int fd, const struct buf *wire)
{
	struct result *r = result_make();
	size_t sent = 0;

	for (;;) {
		struct pollfd p = { fd, (short)(POLLIN | (sent < wire->len ? POLLOUT : 0)), 0 };

		CHECK(poll(&p, 1, 20000) > 0);
		if (p.revents & POLLOUT) {
			ssize_t n = send(fd, wire->data + sent, wire->len - sent,
					 MSG_DONTWAIT | MSG_NOSIGNAL);
			sent += n > 0 ? (size_t)n : 0;
		}
		if (p.revents & (POLLIN | POLLHUP) && !result_read(r, fd))
			break;
	}
	close(fd);
	return r;
}

TEST(standard_input_comes_back_whole)
{
	cleanup(buf_done) struct buf wire = buf_make(64 * MB), data = buf_make(64 * MB);
	struct exec_request q = shell("cat");
	struct result *r;

	for (uint32_t i = 0; data.len < 10 * MB; i++)
		writer_u32(&data, i * 2654435761U);
	for (size_t at = 0; at < data.len; at += 100000)
		frame_add(&wire, FRAME_STDIN, data.data + at,
			  data.len - at < 100000 ? data.len - at : 100000);
	frame_add(&wire, FRAME_STDIN_END, NULL, 0);
	init_start();
	q.flags = EXEC_STDIN;
	r = converse(exec_begin(&q), &wire);
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	CHECK(r->out.len == data.len && memcmp(r->out.data, data.data, data.len) == 0);
	r = run("cat; echo done"); /* without EXEC_STDIN it is empty */
	CHECK_STR(r->out.data, "done\n");
	init_stop();
}

TEST(input_after_its_end_goes_nowhere)
{
	cleanup(buf_done) struct buf wire = buf_make(4096);
	struct exec_request q = shell("cat; sleep 0.2; echo done; exit 5");
	struct result *r;

	frame_add(&wire, FRAME_STDIN, "a", 1);
	frame_add(&wire, FRAME_STDIN_END, NULL, 0);
	frame_add(&wire, FRAME_STDIN, "b", 1);
	frame_add(&wire, FRAME_STDIN_END, NULL, 0);
	init_start();
	q.flags = EXEC_STDIN;
	r = converse(exec_begin(&q), &wire);
	CHECK(!r->failed && r->exited);
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	CHECK_INT(r->exit.code, 5);
	CHECK_STR(r->out.data, "adone\n");
	init_stop();
}

TEST(a_command_may_end_without_reading_its_input)
{
	cleanup(buf_done) struct buf wire = buf_make(64 * MB);
	struct exec_request q = shell("exec 0<&-; sleep 0.1; exit 4");
	static char zero[100000];
	struct result *r;

	for (int i = 0; i < 50; i++)
		frame_add(&wire, FRAME_STDIN, zero, sizeof(zero));
	init_start();
	q.flags = EXEC_STDIN;
	r = converse(exec_begin(&q), &wire);
	CHECK(r->exited);
	CHECK_INT(r->exit.code, 4);
	init_stop();
}

TEST(a_timeout_kills_the_whole_tree)
{
	char script[256];
	struct exec_request q;
	struct result *r;
	uint64_t began;

	init_start();
	snprintf(script, sizeof(script),
		 "echo before; setsid sleep %s & (sleep %s &) ; "
		 "(setsid sh -c 'sleep %s & sleep %s' &); "
		 "sleep %s",
		 mark(), mark(), mark(), mark(), mark());
	q = shell(script);
	q.timeout_ms = 3000; /* by then it has said its word on any machine */
	began = time_mono_ms();
	r = exec_all(q);
	CHECK_INT(r->exit.kind, EXEC_TIMED_OUT);
	CHECK_INT(r->exit.signum, SIGKILL);
	CHECK_STR(r->out.data, "before\n");
	CHECK_INT(count_with(mark()), 0); /* at once: it was seen before it was said */
	CHECK(time_mono_ms() - began < 30000);
	init_stop();
}

/* What a guest's root can do to the process that serves its command. */
TEST(who_stops_its_server_is_timed_out_all_the_same)
{
	char script[256];
	struct exec_request q;
	struct result *r;

	init_start();
	snprintf(script, sizeof(script), "setsid sleep %s & kill -STOP $PPID; sleep %s", mark(),
		 mark());
	q = shell(script);
	q.timeout_ms = 300;
	r = exec_all(q);
	CHECK_INT(r->exit.kind, EXEC_TIMED_OUT);
	CHECK_INT(count_with(mark()), 0);
	init_stop();
}

TEST(who_stops_its_server_again_and_again_is_ended_with_it)
{
	char script[256];
	struct exec_request q;
	int fd;

	init_start();
	snprintf(script, sizeof(script), "while kill -STOP $PPID; do :; done; exec sleep %s",
		 mark());
	q = shell(script);
	fd = exec_begin(&q);
	while (result_read(result_make(), fd))
		;
	close(fd);
	wait_count(mark(), 0);
	init_stop();
}

TEST(what_a_killed_server_has_started_ends_and_the_background_of_others_does_not)
{
	char script[512], other[256];
	struct exec_request q;
	int fd;

	init_start();
	snprintf(other, sizeof(other), "sleep 1%s >/dev/null 2>&1 &", mark());
	CHECK_INT(run(other)->exit.kind, EXEC_EXITED);
	snprintf(script, sizeof(script),
		 "setsid sleep %s & (setsid sh -c 'sleep %s & sleep %s' &); kill -KILL $PPID; "
		 "sleep %s",
		 mark(), mark(), mark(), mark());
	q = shell(script);
	fd = exec_begin(&q);
	while (result_read(result_make(), fd))
		;
	close(fd);
	snprintf(script, sizeof(script), "sleep\n%s", mark());
	wait_count(mark(), 1); /* the number of the other ends with the same digits */
	snprintf(other, sizeof(other), "1%s", mark());
	CHECK_INT(count_with(other), 1);
	init_stop();
}

/* An exec that is held: its connection, and the number of the process that waits. */
static int begin_held(const char *file, uint32_t *pid)
{
	cleanup(buf_done) struct buf in = buf_make(256);
	char script[256], chunk[256];
	struct exec_request q;
	struct frame f;
	struct err e;
	int fd;

	snprintf(script, sizeof(script), "touch %s; exit 5", file);
	q = shell(script);
	q.flags = EXEC_WHOLE | EXEC_HOLD;
	fd = exec_begin(&q);
	while (frame_next((struct bytes){ (void *)buf_str(&in), in.len }, &f, &e) == 0) {
		ssize_t n = read(fd, chunk, sizeof(chunk));

		CHECK(n > 0);
		buf_add(&in, chunk, (size_t)n);
	}
	CHECK_INT(f.type, FRAME_HELD);
	CHECK_OK(frame_u32(&f, pid, &e), &e);
	return fd;
}

TEST(one_that_is_held_runs_nothing_before_it_is_told_to)
{
	cleanup(buf_done) struct buf go = buf_make(64), wrong = buf_make(64);
	char file[64];
	struct result *r;
	uint32_t pid = 0;
	int fd;

	snprintf(file, sizeof(file), "held.%d", getpid());
	frame_add(&go, FRAME_GO, NULL, 0);
	frame_add(&wrong, FRAME_STDIN_END, NULL, 0);
	init_start();
	fd = begin_held(file, &pid);
	CHECK(kill((pid_t)pid, 0) == 0 && access(file, F_OK) < 0);
	send_buf(fd, &go);
	r = exec_end(fd);
	CHECK_INT(r->pid, pid);
	CHECK_INT(r->exit.code, 5);
	CHECK_INT(unlink(file), 0);

	fd = begin_held(file, &pid); /* the other end goes away */
	close(fd);
	for (int i = 0; i < 1000 && kill((pid_t)pid, 0) == 0; i++)
		usleep(10000);
	CHECK(kill((pid_t)pid, 0) < 0);

	fd = begin_held(file, &pid); /* or says something else */
	send_buf(fd, &wrong);
	r = exec_end(fd);
	CHECK(r->failed && kill((pid_t)pid, 0) < 0);
	CHECK(access(file, F_OK) < 0);
	init_stop();
}

/* Reads until this frame comes. */
static void await_frame(int fd, struct buf *in, enum frame_type type)
{
	char chunk[256];
	struct frame f = { 0 };
	struct err e;

	do {
		ssize_t used, n;

		while ((used = frame_next((struct bytes){ (void *)buf_str(in), in->len }, &f,
					  &e)) == 0) {
			n = read(fd, chunk, sizeof(chunk));
			CHECK(n > 0);
			buf_add(in, chunk, (size_t)n);
		}
		CHECK(used > 0 && f.type != FRAME_EXITED);
		buf_drop(in, (size_t)used);
	} while (f.type != type);
}

static int begin_doubted(const char *script, struct buf *in)
{
	struct exec_request q = shell(script);
	int fd;

	q.flags = EXEC_DOUBT;
	fd = exec_begin(&q);
	await_frame(fd, in, FRAME_STARTED);
	return fd;
}

/* 'Z' of one that has ended and was not waited for; 0: there is none. */
static char state_of(uint32_t pid)
{
	char path[64], text[512] = { 0 };
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	(void)!fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	at = strrchr(text, ')');
	return at && at[1] ? at[2] : 0;
}

/* How one ends that kills itself; `word` answers the doubt, or none does. */
static struct exec_exit end_doubted(const struct buf *word)
{
	cleanup(buf_done) struct buf in = buf_make(4096);
	struct exec_exit x;
	uint32_t pid = 0;
	int fd = begin_doubted("echo $$ >pid; kill -9 $$", &in);
	FILE *f;

	await_frame(fd, &in, FRAME_KILLED);
	f = fopen("pid", "re");
	CHECK(f && fscanf(f, "%u", &pid) == 1 && fclose(f) == 0);
	usleep(100000);
	CHECK_INT(state_of(pid), 'Z');
	if (word)
		send_buf(fd, word);
	x = exec_end(fd)->exit;
	CHECK_INT(state_of(pid), 0);
	CHECK_INT(unlink("pid"), 0);
	return x;
}

TEST(one_that_a_sigkill_ended_can_be_seen_until_the_host_has_looked)
{
	cleanup(buf_done) struct buf in = buf_make(4096), go = buf_make(64), kill9 = buf_make(64);
	struct exec_exit x;
	uint64_t began;
	int fd;

	frame_add(&go, FRAME_GO, NULL, 0);
	frame_add_u32(&kill9, FRAME_SIGNAL, SIGKILL);
	init_start();
	x = end_doubted(&go);
	CHECK(x.kind == EXEC_SIGNALLED && x.signum == SIGKILL);
	began = time_mono_ms();
	x = end_doubted(NULL); /* the host does not answer, and that is no time of the command's */
	CHECK(x.kind == EXEC_SIGNALLED && x.wall_us / 1000 + 4000 < time_mono_ms() - began);
	x = end_doubted(&kill9); /* too late to have been that */
	CHECK_INT(x.kind, EXEC_SIGNALLED);

	fd = begin_doubted("sleep 60", &in); /* by us: there is no doubt */
	send_buf(fd, &kill9);
	CHECK_INT(exec_end(fd)->exit.kind, EXEC_KILLED);
	init_stop();
}

TEST(what_a_whole_one_left_goes_with_it_whatever_ends_the_doubt)
{
	cleanup(buf_done) struct buf go = buf_make(64), term = buf_make(64);
	const struct buf *words[] = { &go, &term };
	char script[256];

	frame_add(&go, FRAME_GO, NULL, 0);
	frame_add_u32(&term, FRAME_SIGNAL, SIGTERM);
	snprintf(script, sizeof(script), "setsid sleep %s >/dev/null 2>&1 & kill -9 $$", mark());
	init_start();
	for (size_t i = 0; i < array_len(words); i++) {
		cleanup(buf_done) struct buf in = buf_make(4096);
		struct exec_request q = shell(script);
		int fd;

		q.flags = EXEC_DOUBT | EXEC_WHOLE;
		fd = exec_begin(&q);
		await_frame(fd, &in, FRAME_KILLED);
		send_buf(fd, words[i]);
		CHECK_INT(exec_end(fd)->exit.kind, EXEC_SIGNALLED);
		CHECK_INT(count_with(mark()), 0);
	}
	init_stop();
}

TEST(what_an_ended_exec_left_is_killed_by_its_id_or_with_all)
{
	char script[256];

	init_start();
	snprintf(script, sizeof(script),
		 "setsid sleep %s >/dev/null 2>&1 & (setsid sh -c 'sleep %s & sleep %s' &)", mark(),
		 mark(), mark());
	CHECK(!run_with_id("one", script));
	CHECK(run_with_id("two", script)); /* told that it runs beside what the first left */
	snprintf(script, sizeof(script), "%s", mark());
	wait_count(script, 8); /* and the two shells */
	CHECK(kill_left("one") >= 3);
	CHECK_INT(count_with(script), 4); /* at once: it was seen before it was said */
	CHECK_INT(kill_left("one"), 0);
	CHECK_INT(kill_left("never"), 0);
	CHECK(kill_left("") >= 3);
	CHECK_INT(count_with(script), 0);
	init_stop();
}

TEST(a_timeout_comes_in_time_while_nobody_reads)
{
	struct exec_request q;
	char script[128];
	struct result *r;
	int fd;

	init_start();
	snprintf(script, sizeof(script), "exec yes %s", mark());
	q = shell(script);
	q.timeout_ms = 3000; /* long enough to be counted */
	fd = exec_begin(&q);
	wait_count(mark(), 1);
	wait_count(mark(), 0);
	r = exec_end(fd);
	CHECK_INT(r->exit.kind, EXEC_TIMED_OUT);
	init_stop();
}

TEST(a_fork_bomb_is_caught)
{
	struct exec_request q;
	char script[256];
	struct result *r;

	init_start();
	/* Each one leaves another behind and ends; `sleep` keeps the number in bounds. */
	snprintf(script, sizeof(script),
		 "f() { sleep 0.01; (f &) ; (sleep %s &) }; f; f; f; sleep %s", mark(), mark());
	q = shell(script);
	q.timeout_ms = 500;
	r = exec_all(q);
	CHECK_INT(r->exit.kind, EXEC_TIMED_OUT);
	CHECK_INT(count_with(mark()), 0);
	usleep(100000);
	CHECK_INT(count_with(mark()), 0);
	init_stop();
}

TEST(a_closed_connection_kills_the_whole_tree)
{
	struct exec_request q;
	char script[256];
	int fd;

	init_start();
	snprintf(script, sizeof(script), "setsid sleep %s & (sleep %s &); yes", mark(), mark());
	q = shell(script);
	fd = exec_begin(&q);
	wait_count(mark(), 3); /* and the shell */
	close(fd);
	wait_count(mark(), 0);
	init_stop();
}

TEST(a_signal_reaches_the_tree)
{
	cleanup(buf_done) struct buf frame = buf_make(64);
	struct exec_request q;
	char script[256];
	struct result *r;
	int fd;

	init_start();
	snprintf(script, sizeof(script), "(setsid sleep %s &); sleep %s; echo no", mark(), mark());
	q = shell(script);
	fd = exec_begin(&q);
	wait_count(mark(), 3);
	frame_add_u32(&frame, FRAME_SIGNAL, SIGTERM);
	send_buf(fd, &frame);
	r = exec_end(fd);
	CHECK_INT(r->exit.kind, EXEC_KILLED);
	CHECK_INT(r->exit.signum, SIGTERM);
	wait_count(mark(), 0);

	q = shell("trap 'exit 9' TERM; echo up; while :; do sleep 0.01; done");
	fd = exec_begin(&q);
	r = result_make();
	while (r->out.len < 3 && result_read(r, fd))
		; /* until it has said that the trap is set */
	send_buf(fd, &frame);
	while (result_read(r, fd))
		;
	close(fd);
	CHECK(r->exited);
	CHECK_INT(r->exit.kind, EXEC_EXITED); /* it chose how to end */
	CHECK_INT(r->exit.code, 9);
	init_stop();
}

TEST(what_cannot_run_says_why)
{
	struct exec_request q = { 0 };
	struct result *r;

	init_start();
	strv_add(&q.argv, "no-such-thing");
	r = exec_all(q);
	CHECK(r->failed);
	CHECK_INT(r->e.code, ERR_NOT_FOUND);
	CHECK_STR(r->e.msg, "no such command: no-such-thing");

	q = shell("true");
	snprintf(q.cwd, sizeof(q.cwd), "/no/such/place");
	r = exec_all(q);
	CHECK_INT(r->e.code, ERR_INVALID);
	CHECK_STR(r->e.msg, "no such directory: /no/such/place");

	q = (struct exec_request){ 0 };
	strv_add(&q.argv, "/etc/passwd");
	r = exec_all(q);
	CHECK_INT(r->e.code, ERR_INVALID);
	CHECK_STR(r->e.msg, "cannot run /etc/passwd: Permission denied");
	init_stop();
}

TEST(the_environment_is_overlaid)
{
	struct exec_request q = shell("echo $FROM_INIT $BOTH $MINE $HOME; pwd;"
				      "env | grep -c ^BOTH=;"
				      "umask; ls /proc/self/fd | wc -l;"
				      "grep SigIgn /proc/self/status");
	struct result *r;

	init_start();
	strv_add(&q.env, "BOTH=first");
	strv_add(&q.env, "BOTH=request");
	strv_add(&q.env, "MINE=1=2");
	strv_add(&q.env, "HOME=/h");
	snprintf(q.cwd, sizeof(q.cwd), "/usr");
	r = exec_all(q);
	CHECK_STR(r->out.data, "yes request 1=2 /h\n/usr\n1\n0022\n4\n"
			       "SigIgn:\t0000000000000000\n");
	q = (struct exec_request){ 0 };
	strv_add(&q.argv, "sh");
	strv_add(&q.env, "PATH=/nowhere");
	r = exec_all(q);
	CHECK_INT(r->e.code, ERR_NOT_FOUND); /* looked up on the request's PATH */
	init_stop();
}

TEST(the_background_lives_on_and_nobody_waits_for_it)
{
	char script[256];
	struct result *r;
	uint64_t began = time_mono_ms();

	init_start();
	/* It writes after the end, into a pipe that must not break. */
	snprintf(script, sizeof(script),
		 "(sleep 0.3; echo late; echo late; sleep %s) & echo now", mark());
	r = run(script);
	CHECK_STR(r->out.data, "now\n");
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	CHECK(time_mono_ms() - began < 30000);
	usleep(600000);
	CHECK(count_with(mark()) >= 1);
	CHECK_INT(init_stop(), 0);
	CHECK_INT(count_with(mark()), 0);
}

TEST(a_slow_reader_slows_the_command_down)
{
	struct exec_request q = shell("i=0; while [ $i -lt 400 ]; do head -c 100000 /dev/zero;"
				      " i=$((i+1)); echo $i >&9; done 9>\"$F\"");
	struct result *r = result_make();
	char name[64], text[8192];
	ssize_t n;
	int fd, file;

	init_start();
	snprintf(name, sizeof(name), "%s/progress", init_dir);
	file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	strv_addf(&q.env, "F=%s", name);
	fd = exec_begin(&q);
	for (int i = 0; i < 2000 && pread(file, text, sizeof(text), 0) <= 0; i++)
		usleep(10000);
	usleep(500000);
	n = pread(file, text, sizeof(text), 0);
	CHECK(n > 0 && n < 200); /* a few megabytes' worth of lines, not all 40 */
	while (result_read(r, fd))
		;
	CHECK_INT(r->out.len, 40000000);
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	unlink(name);
	init_stop();
}

TEST(many_operations_at_once)
{
	int fds[50];

	init_start();
	for (int i = 0; i < 50; i++) {
		struct exec_request q = shell("sleep 0.2; echo $N");

		strv_addf(&q.env, "N=%d", i);
		fds[i] = exec_begin(&q);
	}
	for (int i = 0; i < 50; i++) {
		struct result *r = exec_end(fds[i]);
		char want[16];

		snprintf(want, sizeof(want), "%d\n", i);
		CHECK_STR(r->out.data, want);
	}
	CHECK_INT(init_stop(), 0);
}

TEST(the_end_of_the_sandbox_is_told)
{
	char script[128];
	struct exec_request q;
	struct result *r;
	uint64_t began;
	int fd;

	init_start();
	snprintf(script, sizeof(script), "(setsid sleep %s &); exec sleep %s", mark(), mark());
	q = shell(script);
	fd = exec_begin(&q);
	wait_count(mark(), 2);
	began = time_mono_ms();
	CHECK_INT(init_stop(), 0);
	r = exec_end(fd);
	CHECK_INT(r->exit.kind, EXEC_SIGNALLED);
	CHECK_INT(r->exit.signum, SIGTERM);
	CHECK_INT(count_with(mark()), 0);
	CHECK(time_mono_ms() - began < 30000);
}

TEST(nonsense_is_refused)
{
	struct result *r = result_make();
	int fd;

	init_start();
	fd = dial();
	CHECK(write_all(fd, "GET / HTTP/1.1\r\n\r\n", 18) == 0);
	while (result_read(r, fd))
		;
	CHECK(r->failed);
	CHECK_INT(r->e.code, ERR_INVALID);
	init_stop();
}

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

#include "lib/file.h"
#include "lib/strv.h"
#include "lib/time.h"
#include "proto/exec.h"
#include "proto/frame.h"
#include "proto/writer.h"
#include "test.h"

#define MB (1 << 20)

static char dir[] = "init-test-XXXXXX";
static char path[64];
static pid_t init_pid;

static void init_start(void)
{
	CHECK(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	init_pid = fork();
	if (init_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setenv("FROM_INIT", "yes", 1);
		setenv("BOTH", "init", 1);
		execl(getenv("BERTH_INIT"), "berth-init", "--listen", path, NULL);
		_exit(127);
	}
	CHECK(init_pid > 0);
}

static int init_stop(void)
{
	int status;

	kill(init_pid, SIGTERM);
	CHECK(waitpid(init_pid, &status, 0) == init_pid);
	unlink(path);
	rmdir(dir);
	return status;
}

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, path, strlen(path) + 1);
	for (int i = 0; i < 500; i++) {
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return fd;
		usleep(10000);
	}
	test_fail(__FILE__, __LINE__, "berth-init does not answer");
}

static void send_buf(int fd, const struct buf *b)
{
	CHECK(write_all(fd, b->data, b->len) == 0);
}

/* sh -c `script` */
static struct exec_request shell(const char *script)
{
	struct exec_request q = { 0 };

	strv_add(&q.argv, "sh");
	strv_add(&q.argv, "-c");
	strv_add(&q.argv, script);
	return q;
}

static int exec_begin(struct exec_request *q)
{
	cleanup(buf_done) struct buf record = buf_make(MB), frame = buf_make(MB);
	int fd = dial();

	exec_request_encode(&record, q);
	frame_add(&frame, FRAME_EXEC, record.data, record.len);
	send_buf(fd, &frame);
	exec_request_done(q);
	return fd;
}

struct result {
	struct buf in, out, err;
	uint32_t pid;
	bool exited, failed, beside;
	struct exec_exit exit;
	struct err e;
};

/* One at a time: the next one ends the one before. */
static struct result *result_make(void)
{
	static struct result r;

	buf_done(&r.in);
	buf_done(&r.out);
	buf_done(&r.err);
	r = (struct result){
		.in = buf_make(4 * MB),
		.out = buf_make(64 * MB),
		.err = buf_make(64 * MB),
	};
	return &r;
}

static void result_frame(struct result *r, const struct frame *f)
{
	struct err e;

	CHECK(!r->exited && !r->failed);
	if (f->type == FRAME_STDOUT)
		buf_add(&r->out, f->payload.data, f->payload.len);
	else if (f->type == FRAME_STDERR)
		buf_add(&r->err, f->payload.data, f->payload.len);
	else if (f->type == FRAME_BESIDE)
		r->beside = true;
	else if (f->type == FRAME_STARTED)
		CHECK_OK(frame_u32(f, &r->pid, &e), &e);
	else if (f->type == FRAME_EXITED) {
		CHECK_OK(exec_exit_decode(f->payload, &r->exit, &e), &e);
		r->exited = true;
	} else if (f->type == FRAME_ERROR) {
		frame_error(f, &r->e);
		r->failed = true;
	} else
		test_fail(__FILE__, __LINE__, "a frame of type %u", f->type);
}

/* Read once; false at the end of the connection. */
static bool result_read(struct result *r, int fd)
{
	static char chunk[256 * 1024];
	ssize_t n = read(fd, chunk, sizeof(chunk)), used;
	struct frame f;
	struct err e;

	if (n <= 0)
		return false;
	buf_add(&r->in, chunk, (size_t)n);
	while ((used = frame_next((struct bytes){ (void *)r->in.data, r->in.len }, &f, &e)) > 0) {
		result_frame(r, &f);
		buf_drop(&r->in, (size_t)used);
	}
	CHECK(used == 0);
	return true;
}

static struct result *exec_end(int fd)
{
	struct result *r = result_make();

	while (result_read(r, fd))
		;
	close(fd);
	CHECK(r->exited || r->failed);
	return r;
}

static struct result *exec_all(struct exec_request q)
{
	return exec_end(exec_begin(&q));
}

static struct result *run(const char *script)
{
	return exec_all(shell(script));
}

/* How many processes have this word in their command line. */
static int count_with(const char *word)
{
	char cmd[256];
	FILE *p;
	int n = -1;

	snprintf(cmd, sizeof(cmd), "grep -lsza '%c[%c]%s' /proc/[0-9]*/cmdline | wc -l", word[0],
		 word[1], word + 2);
	p = popen(cmd, "r");
	CHECK(p && fscanf(p, "%d", &n) == 1);
	pclose(p);
	return n;
}

static void wait_count(const char *word, int want)
{
	int n = count_with(word);

	/* A shell between fork and exec looks like one more: the number passes by its goal. */
	for (int i = 0; i < 1000 && n != want; i++) {
		usleep(10000);
		n = count_with(word);
	}
	CHECK_INT(n, want);
}

/* A number nobody else's sleep has. */
static const char *mark(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "7%d.25", getpid());
	return text;
}

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
	q.timeout_ms = 300;
	began = time_mono_ms();
	r = exec_all(q);
	CHECK_INT(r->exit.kind, EXEC_TIMED_OUT);
	CHECK_INT(r->exit.signum, SIGKILL);
	CHECK_STR(r->out.data, "before\n");
	CHECK_INT(count_with(mark()), 0); /* at once: it was seen before it was said */
	CHECK(time_mono_ms() - began < 3000);
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

/* With an id, until its one record: then the connection is closed, as berthd's would be. */
static bool run_with_id(const char *id, const char *script)
{
	struct exec_request q = shell(script);
	struct result *r = result_make();
	int fd;

	snprintf(q.id, sizeof(q.id), "%s", id);
	fd = exec_begin(&q);
	while (!r->exited && result_read(r, fd))
		;
	CHECK_INT(r->exit.kind, EXEC_EXITED);
	close(fd);
	return r->beside;
}

static uint32_t kill_left(const char *id)
{
	cleanup(buf_done) struct buf id_text = buf_make(256), out = buf_make(256);
	cleanup(buf_done) struct buf in = buf_make(256);
	uint32_t killed = 0;
	struct frame f;
	struct err e;
	char chunk[256];
	int fd = dial();
	ssize_t n;

	writer_str(&id_text, id);
	frame_add(&out, FRAME_KILL_LEFT, id_text.data, id_text.len);
	send_buf(fd, &out);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(&in, chunk, (size_t)n);
	close(fd);
	CHECK(frame_next((struct bytes){ (void *)in.data, in.len }, &f, &e) > 0);
	CHECK_INT(f.type, FRAME_KILL_LEFT);
	CHECK_OK(frame_u32(&f, &killed, &e), &e);
	return killed;
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
	q.timeout_ms = 300;
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
	usleep(200000);
	send_buf(fd, &frame);
	r = exec_end(fd);
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
	CHECK(time_mono_ms() - began < 2000);
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
	snprintf(name, sizeof(name), "%s/progress", dir);
	file = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	strv_addf(&q.env, "F=%s", name);
	fd = exec_begin(&q);
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
	CHECK(time_mono_ms() - began < 4000);
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

#include "init-world.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/strv.h"
#include "proto/frame.h"
#include "proto/writer.h"
#include "test.h"

char init_dir[] = "init-test-XXXXXX";
static char path[64];
static pid_t init_pid, test_pid;

static void kill_children(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	int pid;

	while (f && fscanf(f, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (f)
		fclose(f);
}

/*
 * At the end of the test, also by a CHECK that failed: all that was started. What init or a
 * command of it leaves behind, in whatever session, has become a child of this process.
 */
static void end_all(void)
{
	if (getpid() != test_pid)
		return;
	do
		kill_children();
	while (waitpid(-1, NULL, 0) > 0);
	unlink(path);
	rmdir(init_dir);
}

void init_start_as(void (*before)(void))
{
	if (test_pid != getpid()) {
		test_pid = getpid();
		CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0 && atexit(end_all) == 0);
	}
	CHECK(mkdtemp(init_dir));
	snprintf(path, sizeof(path), "%s/sock", init_dir);
	init_pid = fork();
	if (init_pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		setenv("FROM_INIT", "yes", 1);
		setenv("BOTH", "init", 1);
		if (before)
			before();
		execl(getenv("BERTH_INIT"), "berth-init", "--listen", path, NULL);
		_exit(127);
	}
	CHECK(init_pid > 0);
}

void init_start(void)
{
	init_start_as(NULL);
}

int init_stop(void)
{
	int status;

	kill(init_pid, SIGTERM);
	CHECK(waitpid(init_pid, &status, 0) == init_pid);
	unlink(path);
	rmdir(init_dir);
	return status;
}

int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(addr.sun_path, path, strlen(path) + 1);
	for (int i = 0; i < 3000; i++) { /* half a minute, on a busy machine */
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
			return fd;
		usleep(10000);
	}
	test_fail(__FILE__, __LINE__, "berth-init does not answer");
}

void send_buf(int fd, const struct buf *b)
{
	CHECK(write_all(fd, b->data, b->len) == 0);
}

/* sh -c `script` */
struct exec_request shell(const char *script)
{
	struct exec_request q = { 0 };

	strv_add(&q.argv, "sh");
	strv_add(&q.argv, "-c");
	strv_add(&q.argv, script);
	return q;
}

int exec_begin(struct exec_request *q)
{
	cleanup(buf_done) struct buf record = buf_make(MB), frame = buf_make(MB);
	int fd = dial();

	exec_request_encode(&record, q);
	frame_add(&frame, FRAME_EXEC, record.data, record.len);
	send_buf(fd, &frame);
	exec_request_done(q);
	return fd;
}

/* One at a time: the next one ends the one before. */
struct result *result_make(void)
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
bool result_read(struct result *r, int fd)
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

struct result *exec_end(int fd)
{
	struct result *r = result_make();

	while (result_read(r, fd))
		;
	close(fd);
	CHECK(r->exited || r->failed);
	return r;
}

struct result *exec_all(struct exec_request q)
{
	return exec_end(exec_begin(&q));
}

struct result *run(const char *script)
{
	return exec_all(shell(script));
}

/* How many processes have this word in their command line. */
int count_with(const char *word)
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

void wait_count(const char *word, int want)
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
const char *mark(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "7%d.25", getpid());
	return text;
}

/* With an id, until its one record: then the connection is closed, as berthd's would be. */
bool run_with_id(const char *id, const char *script)
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

struct left ask_left(const char *id)
{
	cleanup(buf_done) struct buf id_text = buf_make(256), out = buf_make(256);
	cleanup(buf_done) struct buf in = buf_make(2048);
	struct left l = { 0 };
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
	l.failed = f.type == FRAME_ERROR;
	if (l.failed) {
		frame_error(&f, &l.e);
		return l;
	}
	CHECK_INT(f.type, FRAME_KILL_LEFT);
	CHECK_OK(frame_u32(&f, &l.killed, &e), &e);
	return l;
}

uint32_t kill_left(const char *id)
{
	struct left l = ask_left(id);

	CHECK_OK(l.failed ? -1 : 0, &l.e);
	return l.killed;
}

#include "lib/proc.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/buf.h"
#include "test.h"

static void read_all(int fd, struct buf *out)
{
	char chunk[256];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(out, chunk, (size_t)n);
}

TEST(a_child_gets_its_descriptors_and_no_others)
{
	static const char *const argv[] = { "sh", "-c", "cat <&3; ls /proc/self/fd | wc -l", NULL };
	cleanup(buf_done) struct buf out = buf_make(1024);
	int data[2], result[2], extra = open("/dev/null", O_RDONLY); /* leaks unless closed */
	struct proc_spec spec = { .argv = argv, .in = -1, .err = -1, .pass_count = 1 };
	struct proc p;
	struct err e;

	CHECK(extra >= 0);
	CHECK(pipe2(data, O_CLOEXEC) == 0 && pipe2(result, O_CLOEXEC) == 0);
	CHECK(write(data[1], "hi\n", 3) == 3);
	close(data[1]);
	spec.out = result[1];
	spec.pass[0] = data[0];
	CHECK_OK(proc_start(&spec, &p, &e), &e);
	close(result[1]);
	read_all(result[0], &out);
	CHECK_INT(WEXITSTATUS(proc_wait(&p)), 0);
	CHECK_STR(out.data, "hi\n5\n"); /* 0 1 2 3 and the directory ls has open */
}

TEST(a_command_that_is_not_there_exits_with_127)
{
	static const char *const argv[] = { "/no/such/command", NULL };
	struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1 };
	struct proc p;
	struct err e;

	CHECK_OK(proc_start(&spec, &p, &e), &e);
	CHECK_INT(WEXITSTATUS(proc_wait(&p)), 127);
}

TEST(a_killed_child_says_so)
{
	static const char *const argv[] = { "sleep", "100", NULL };
	struct proc_spec spec = { .argv = argv, .in = -1, .out = -1, .err = -1 };
	char text[64];
	struct proc p;
	struct err e;
	int status;

	CHECK_OK(proc_start(&spec, &p, &e), &e);
	CHECK(!proc_ended(&p, &status));
	proc_kill(&p, SIGKILL);
	proc_status_text(proc_wait(&p), text, sizeof(text));
	CHECK_STR(text, "was killed by signal 9");
	proc_kill(&p, SIGKILL); /* harmless */
}

/* In a child: it keeps what it is lowered to. */
TEST(root_is_held_by_no_hard_limit_on_open_files)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct rlimit few = { 1000, 1000 }, more = { 1001, 1001 };

		if (setrlimit(RLIMIT_NOFILE, &few) < 0)
			_exit(1);
		if (setrlimit(RLIMIT_NOFILE, &more) < 0)
			_exit(0); /* without CAP_SYS_RESOURCE it is */
		proc_raise_files();
		_exit(proc_files() == PROC_FILES_WANTED ? 0 : 2);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

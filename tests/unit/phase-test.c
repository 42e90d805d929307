/* Phases: only the table's moves are made. */
#include "lib/phase.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum {
	OPEN,
	HALF,
	SHUT
};

static const char *const names[] = { "open", "half", "shut" };
static const uint32_t next[] = {
	[OPEN] = PHASE_BIT(HALF) | PHASE_BIT(SHUT),
	[HALF] = PHASE_BIT(HALF) | PHASE_BIT(SHUT),
	[SHUT] = 0,
};
static const struct phase_table table = { "a door", names, next, array_len(names) };

/* How a process ends that makes this move, and what it says. */
static int end_of(uint8_t from, unsigned to, char *said, size_t size)
{
	int ends[2], status;
	ssize_t n;
	pid_t pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDERR_FILENO);
		_exit(phase_move(&table, &from, to) ? 0 : 1);
	}
	close(ends[1]);
	n = read(ends[0], said, size - 1);
	said[n > 0 ? n : 0] = '\0';
	close(ends[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

TEST(the_moves_of_the_table_are_made)
{
	uint8_t phase = OPEN;

	CHECK(phase_move(&table, &phase, HALF) && phase == HALF);
	CHECK(phase_move(&table, &phase, HALF) && phase == HALF);
	CHECK(phase_move(&table, &phase, SHUT) && phase == SHUT);
}

TEST(another_move_is_a_bug_that_ends_a_test)
{
	static const uint8_t from[] = { SHUT, SHUT, HALF, OPEN, OPEN, 9 };
	static const uint8_t to[] = { SHUT, OPEN, OPEN, OPEN, 3, SHUT };
	char said[400];

	CHECK(phase_bugs_are_fatal());
	for (size_t i = 0; i < array_len(from); i++) {
		int status = end_of(from[i], to[i], said, sizeof(said));

		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
		CHECK(strstr(said, "phase: illegal move of a door from "));
	}
	(void)end_of(SHUT, HALF, said, sizeof(said));
	CHECK(strstr(said, "illegal move of a door from shut to half"));
}

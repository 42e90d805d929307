#include "lib/crash.h"

#ifdef BERTH_CRASH
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORDER_MAX 256

/* One order at a time; a new one, known by its file, is counted from the start. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	ino_t ino;
	struct timespec made;
	unsigned passed;
} order;

static void note(const char *dir, const char *name)
{
	char path[4096], line[ORDER_MAX];
	int fd, n;

	snprintf(path, sizeof(path), "%s/log", dir);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	if (fd < 0)
		return;
	n = snprintf(line, sizeof(line), "%s %d %d\n", name, (int)getpid(), (int)getppid());
	(void)!write(fd, line, (size_t)n);
	close(fd);
}

/* The order in `dir`, if it is about this name; `text` is the part behind the name. */
static bool is_ordered(const char *dir, const char *name, char text[ORDER_MAX])
{
	char path[4096], all[ORDER_MAX] = "";
	struct stat st;
	size_t len = strlen(name);
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/at", dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, all, sizeof(all) - 1);
	if (n <= (ssize_t)len || strncmp(all, name, len) != 0 || all[len] != ' ' ||
	    fstat(fd, &st) < 0) {
		close(fd);
		return false;
	}
	close(fd);
	if (order.ino != st.st_ino || memcmp(&order.made, &st.st_mtim, sizeof(order.made)) != 0) {
		order.ino = st.st_ino;
		order.made = st.st_mtim;
		order.passed = 0;
	}
	memcpy(text, all + len + 1, sizeof(all) - len - 1);
	return true;
}

static void die(char *who)
{
	bool self = false;

	for (char *save = NULL, *one = strtok_r(who, ", \n", &save); one;
	     one = strtok_r(NULL, ", \n", &save)) {
		pid_t pid = strcmp(one, "parent") == 0 ? getppid() : (pid_t)strtoull(one, NULL, 10);

		if (strcmp(one, "self") == 0)
			self = true;
		else if (pid > 1)
			(void)kill(pid, SIGKILL);
	}
	if (self)
		(void)kill(getpid(), SIGKILL);
	while (self) /* it comes in its own time, to all threads */
		pause();
}

static void by_order(const char *dir, const char *name)
{
	char text[ORDER_MAX], from[4096], to[4096], *who = NULL;
	unsigned wanted;

	if (!is_ordered(dir, name, text))
		return;
	wanted = (unsigned)strtoull(text, &who, 10);
	if (++order.passed != wanted || !who || *who != ' ')
		return;
	snprintf(from, sizeof(from), "%s/at", dir);
	snprintf(to, sizeof(to), "%s/hit", dir);
	if (rename(from, to) == 0)
		die(who + 1);
}

static void by_name(const char *at, const char *name)
{
	size_t len = strlen(name);
	unsigned wanted = 1;

	if (strncmp(at, name, len) != 0 || (at[len] != '\0' && at[len] != ':'))
		return;
	if (at[len] == ':' && at[len + 1] >= '1' && at[len + 1] <= '9')
		wanted = (unsigned)(at[len + 1] - '0');
	if (++order.passed == wanted)
		die((char[]){ "self" });
}

void crash_point(const char *name)
{
	const char *at = getenv("BERTH_CRASH_AT"), *dir = getenv("BERTH_CRASH_DIR");

	pthread_mutex_lock(&lock);
	if (dir) {
		note(dir, name);
		by_order(dir, name);
	}
	if (at)
		by_name(at, name);
	pthread_mutex_unlock(&lock);
}
#else
/* ISO C wants something in every file. */
extern const int crash_points_are_off;
const int crash_points_are_off = 1;
#endif

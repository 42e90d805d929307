#include "node/kernel-log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "node/group.h"

#define LOG_PATH      "/dev/kmsg"
#define RECORD_MAX    8192 /* a longer one the kernel does not give out */
#define STATUS_SIZE   (16 * 1024)
#define FIRST_PID_NS  4026531836UL /* the kernel's own number of it: the log counts pids there */
#define LOG_LEAST_US  10000000     /* an ended process is not kept for so long */
#define FACILITY_BITS 3

/* All of them stand before anything that a guest chose. */
static const char *const killed[] = {
	"Memory cgroup out of memory: Killed process ",
	"Out of memory: Killed process ",
	"Out of memory (oom_kill_allocating_task): Killed process ",
};

/* Takes a number and the byte behind it off the text. */
static bool take_number(struct bytes *text, char behind, uint64_t most, uint64_t *ret)
{
	uint64_t n = 0;
	size_t i;

	for (i = 0; i < text->len && text->data[i] >= '0' && text->data[i] <= '9'; i++) {
		n = n * 10 + (uint64_t)(text->data[i] - '0');
		if (n > most)
			return false;
	}
	if (i == 0 || i == text->len || text->data[i] != (uint8_t)behind)
		return false;
	text->data += i + 1;
	text->len -= i + 1;
	*ret = n;
	return true;
}

static bool take_start(struct bytes *text, const char *start)
{
	size_t len = strlen(start);

	if (text->len < len || memcmp(text->data, start, len) != 0)
		return false;
	text->data += len;
	text->len -= len;
	return true;
}

/* "3,78682,12430200681,-;Memory cgroup out of memory: Killed process 1826 (python3) ..." */
bool kernel_record_parse(struct bytes text, struct kernel_record *ret)
{
	struct kernel_record r = { 0 };
	uint64_t level, number, pid;
	const uint8_t *head;

	if (!take_number(&text, ',', UINT32_MAX, &level) ||
	    !take_number(&text, ',', UINT64_MAX / 16, &number) ||
	    !take_number(&text, ',', UINT64_MAX / 16, &r.at_us))
		return false;
	head = text.len ? memchr(text.data, ';', text.len) : NULL;
	if (!head)
		return false;
	text.len -= (size_t)(head + 1 - text.data);
	text.data = head + 1;
	/* Of any other facility it is not the kernel's word: users write there, too. */
	for (size_t i = 0; level >> FACILITY_BITS == 0 && i < array_len(killed); i++)
		if (take_start(&text, killed[i]) && take_number(&text, ' ', INT32_MAX, &pid) &&
		    take_start(&text, "("))
			r.killed = (pid_t)pid;
	*ret = r;
	return true;
}

void kernel_log_init(struct kernel_log *l)
{
	*l = (struct kernel_log){ .fd = -1 };
}

void kernel_log_close(struct kernel_log *l)
{
	close_fd(&l->fd);
	l->fd = -1;
}

static void take_record(struct kernel_log *l, const uint8_t *text, size_t len)
{
	struct kernel_record r;

	if (!kernel_record_parse((struct bytes){ text, len }, &r))
		return;
	if (!l->begun)
		l->from = r.at_us;
	l->begun = true;
	l->last = r.at_us;
	if (r.killed > 0)
		l->kills[l->count++ % KERNEL_LOG_KILLS] = r.killed;
}

/* All that came since it was read last, or that is still there. */
static int read_on(struct kernel_log *l)
{
	uint8_t text[RECORD_MAX];
	ssize_t n;

	if (l->fd < 0)
		l->fd = open(LOG_PATH, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (l->fd < 0)
		return -1;
	for (;;) {
		n = read(l->fd, text, sizeof(text));
		if (n > 0)
			take_record(l, text, (size_t)n);
		else if (n < 0 && errno == EPIPE)
			l->begun = false; /* what came meanwhile is overwritten */
		else if (n == 0 || errno != EINTR)
			break;
	}
	return n < 0 && errno == EAGAIN ? 0 : -1;
}

static uint64_t namespace_of(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

/* Has it ended, and is this what the namespace calls it? */
static bool is_that(pid_t host_pid, uint64_t namespace, uint32_t pid)
{
	cleanup(buf_done) struct buf status = buf_make(STATUS_SIZE);
	char path[64];
	struct err gone;

	snprintf(path, sizeof(path), "/proc/%d/status", host_pid);
	return file_read(AT_FDCWD, path, &status, &gone) == 0 &&
	       strstr(buf_str(&status), "\nState:\tZ") &&
	       group_pid_is(buf_str(&status), pid) && namespace_of(host_pid) == namespace;
}

enum presence kernel_log_killed(struct kernel_log *l, pid_t init, uint32_t pid)
{
	uint64_t namespace = namespace_of(init);
	size_t known;

	if (namespace == 0 || namespace_of(getpid()) != FIRST_PID_NS || read_on(l) < 0)
		return PRESENCE_UNKNOWN;
	known = l->count < KERNEL_LOG_KILLS ? l->count : KERNEL_LOG_KILLS;
	for (size_t i = 0; i < known; i++)
		if (l->kills[i] > 0 && is_that(l->kills[i], namespace, pid)) {
			l->kills[i] = 0; /* its number may be another's soon */
			return PRESENCE_PRESENT;
		}
	return l->last - l->from < LOG_LEAST_US ? PRESENCE_UNKNOWN : PRESENCE_ABSENT;
}

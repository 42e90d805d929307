#include "node/kernel-log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"
#include "lib/time.h"
#include "node/group.h"

#define LOG_PATH      "/dev/kmsg"
#define RECORD_MAX    8192 /* a longer one the kernel does not give out */
#define STATUS_SIZE   (16 * 1024)
#define FIRST_PID_NS  4026531836UL /* the kernel's own number of it: the log counts pids there */
#define LOG_LEAST_US  30000000     /* an ended process is not kept for so long */
#define START_FIELD   22           /* of /proc/PID/stat; in ticks since boot */
#define SKEW_US       1000000      /* between the clocks, and a thousandth of the uptime */
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

void kernel_log_take(struct kernel_log *l, struct bytes text)
{
	struct kernel_record r;

	if (!kernel_record_parse(text, &r))
		return;
	if (!l->begun)
		l->from = r.at_us;
	l->begun = true;
	l->last = r.at_us;
	if (r.killed > 0)
		l->kills[l->count++ % KERNEL_LOG_KILLS] =
			(struct kernel_kill){ r.killed, r.at_us };
}

uint64_t kernel_log_age(const struct kernel_log *l, uint64_t at_us, uint64_t now_us)
{
	uint64_t said = l->last > at_us ? l->last - at_us : 0;
	uint64_t skew = SKEW_US + now_us / 1000, passed = 0;

	if (now_us > at_us && now_us - at_us > skew)
		passed = now_us - at_us - skew;
	return said > passed ? said : passed;
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
			kernel_log_take(l, (struct bytes){ text, (size_t)n });
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

/* So long it is there at most; UINT64_MAX: it cannot be told. */
static uint64_t process_age_us(pid_t host_pid)
{
	cleanup(buf_done) struct buf stat = buf_make(STATUS_SIZE);
	uint64_t ticks, began_ms, now_ms = time_boot_ms();
	char path[64], number[24];
	const char *at;
	struct err gone;

	snprintf(path, sizeof(path), "/proc/%d/stat", host_pid);
	if (file_read(AT_FDCWD, path, &stat, &gone) < 0)
		return UINT64_MAX;
	at = strrchr(buf_str(&stat), ')'); /* its name is the guest's to choose */
	for (int field = 2; at && field < START_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (!at ||
	    !str_copy_bytes(number, sizeof(number), at + 1, strcspn(at + 1, " ")) ||
	    str_u64(number, &ticks, &gone) < 0)
		return UINT64_MAX;
	began_ms = ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	return began_ms < now_ms ? (now_ms + 1 - began_ms) * 1000 : 1000;
}

/*
 * A number alone is no process: of all that had it since, the one that was killed is the one
 * that was there before the kernel said so.
 */
enum presence kernel_log_says(const struct kernel_log *l, pid_t init, uint32_t pid)
{
	size_t known = l->count < KERNEL_LOG_KILLS ? l->count : KERNEL_LOG_KILLS;
	uint64_t namespace = namespace_of(init), now_us = time_mono_us();

	if (namespace == 0)
		return PRESENCE_UNKNOWN;
	for (size_t i = 0; i < known; i++) {
		uint64_t age = kernel_log_age(l, l->kills[i].at_us, now_us);

		if (age < LOG_LEAST_US && is_that(l->kills[i].pid, namespace, pid) &&
		    process_age_us(l->kills[i].pid) >= age)
			return PRESENCE_PRESENT;
	}
	return l->last - l->from < LOG_LEAST_US ? PRESENCE_UNKNOWN : PRESENCE_ABSENT;
}

enum presence kernel_log_killed(struct kernel_log *l, pid_t init, uint32_t pid)
{
	if (namespace_of(getpid()) != FIRST_PID_NS || read_on(l) < 0)
		return PRESENCE_UNKNOWN;
	return kernel_log_says(l, init, pid);
}

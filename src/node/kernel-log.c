#include "node/kernel-log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/proc.h"
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
#define TASK_NUMBERS  8   /* at least: newer kernels have more pages; the last may be negative */
#define FIRST_SIZE    3   /* of these; before them: pid, user, process */
#define SIZE_DRIFT    256 /* pages between two lines of one memory: others of it go on running */
#define LIST_HEAD     "Tasks state (memory values in pages):"

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

/*
 * "[  13514] 2245184 13514    16201    15872    65536    0    0 probe": pid, user, process, pages
 * that are mapped and resident, more of its memory, oom_score_adj. "NAME[7]: segfault" begins with
 * what a guest chose, which is too short to have so many.
 */
static bool take_task(struct bytes text, struct kernel_task *ret)
{
	uint64_t n[TASK_NUMBERS];

	if (!take_start(&text, "["))
		return false;
	for (size_t i = 0; i < TASK_NUMBERS; i++) {
		while (take_start(&text, " "))
			;
		if (i == TASK_NUMBERS - 1)
			(void)take_start(&text, "-"); /* oom_score_adj */
		if (!take_number(&text, i == 0 ? ']' : ' ', i < 3 ? UINT32_MAX : UINT64_MAX / 16,
				 &n[i]))
			return false;
	}
	*ret = (struct kernel_task){ .pid = (pid_t)n[0], .process = (pid_t)n[2] };
	memcpy(ret->size, n + FIRST_SIZE, sizeof(ret->size));
	return true;
}

/* The number behind the last of these words; what stands before it may be a guest's. */
static bool find_last_number(struct bytes text, const char *word, char behind, uint64_t *ret)
{
	size_t len = strlen(word);

	for (size_t at = text.len; at >= len; at--)
		if (memcmp(text.data + at - len, word, len) == 0) {
			struct bytes rest = { text.data + at, text.len - at };

			return take_number(&rest, behind, INT32_MAX, ret);
		}
	return false;
}

/*
 * "oom-kill:constraint=...,task_memcg=/a/b,task=NAME,pid=7,uid=0": all before the name and all
 * behind it is the host's.
 */
static bool take_group(struct bytes text, struct kernel_record *ret)
{
	static const char before[] = ",task_memcg=", behind[] = ",task=";
	const uint8_t *at, *end;
	uint64_t pid;

	if (!take_start(&text, "oom-kill:constraint="))
		return false;
	at = memmem(text.data, text.len, before, sizeof(before) - 1);
	if (!at)
		return false;
	at += sizeof(before) - 1;
	end = memmem(at, (size_t)(text.data + text.len - at), behind, sizeof(behind) - 1);
	if (!end || !find_last_number(text, ",pid=", ',', &pid))
		return false;
	ret->group = (struct bytes){ at, (size_t)(end - at) };
	ret->chosen = (pid_t)pid;
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
	*ret = r;
	/* Of any other facility it is not the kernel's word: users write there, too. */
	if (level >> FACILITY_BITS != 0 || take_task(text, &ret->task) ||
	    take_group(text, ret))
		return true;
	r.list = take_start(&text, LIST_HEAD);
	for (size_t i = 0; i < array_len(killed); i++)
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

static void forget_list(struct kernel_log *l)
{
	l->tasks = 0;
	l->chosen = 0;
	l->group[0] = '\0';
}

void kernel_log_gap(struct kernel_log *l)
{
	l->begun = false;
	forget_list(l);
}

/*
 * Only those may share it. What is mapped does not change while the list is written; of the
 * rest, a process that maps as much and uses less has a memory of its own.
 */
static bool may_share_memory(const struct kernel_task *a, const struct kernel_task *b)
{
	if (a->size[0] != b->size[0])
		return false;
	for (size_t i = 1; i < KERNEL_LOG_SIZES; i++)
		if (a->size[i] > b->size[i] + SIZE_DRIFT || b->size[i] > a->size[i] + SIZE_DRIFT)
			return false;
	return true;
}

/* Did it end that process, and can it have ended no other? */
static bool is_alone(const struct kernel_log *l, pid_t pid)
{
	const struct kernel_task *own = NULL;
	size_t same = 0;

	if (l->group[0] == '\0' || l->tasks > KERNEL_LOG_TASKS)
		return false; /* the list is of another one, or not whole */
	for (size_t i = 0; i < l->tasks && !own; i++)
		if (l->task[i].pid == pid && l->task[i].process == pid)
			own = &l->task[i];
	for (size_t i = 0; own && i < l->tasks; i++)
		same += may_share_memory(&l->task[i], own);
	return same == 1;
}

/*
 * A list for a process that then ended by itself is left over: it is not that of the next kill,
 * which may come without one.
 */
static void take_kill(struct kernel_log *l, const struct kernel_record *r)
{
	struct kernel_kill *k = &l->kills[l->count++ % KERNEL_LOG_KILLS];

	if (l->chosen != r->killed)
		forget_list(l);
	if (l->count > KERNEL_LOG_KILLS)
		l->forgot_us = k->at_us;
	*k = (struct kernel_kill){ r->killed, r->at_us, time_boot_ms(), is_alone(l, r->killed),
				   "" };
	memcpy(k->group, l->group, sizeof(k->group));
	forget_list(l);
}

void kernel_log_take(struct kernel_log *l, struct bytes text)
{
	struct kernel_record r;

	if (!kernel_record_parse(text, &r))
		return kernel_log_gap(l);
	if (!l->begun)
		l->from = r.at_us;
	l->begun = true;
	l->last = r.at_us;
	if (r.list)
		forget_list(l);
	if (r.task.pid > 0 && l->tasks < KERNEL_LOG_TASKS)
		l->task[l->tasks++] = r.task;
	else if (r.task.pid > 0)
		l->tasks = KERNEL_LOG_TASKS + 1;
	if (r.group.len > 0)
		l->chosen = r.chosen;
	if (r.group.len > 0 && !str_copy_bytes(l->group, sizeof(l->group),
					       (const char *)r.group.data, r.group.len))
		l->group[0] = '\0';
	if (r.killed > 0)
		take_kill(l, &r);
}

uint64_t kernel_log_age(const struct kernel_log *l, uint64_t at_us, uint64_t now_us)
{
	uint64_t said = l->last > at_us ? l->last - at_us : 0;
	uint64_t skew = SKEW_US + now_us / 1000, passed = 0;

	if (now_us > at_us && now_us - at_us > skew)
		passed = now_us - at_us - skew;
	return said > passed ? said : passed;
}

static uint64_t namespace_of(pid_t pid)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", pid);
	return stat(path, &st) == 0 ? st.st_ino : 0;
}

int kernel_log_read(struct kernel_log *l)
{
	uint8_t text[RECORD_MAX];
	ssize_t n;

	if (namespace_of(getpid()) != FIRST_PID_NS)
		return -1;
	if (l->fd < 0)
		l->fd = open(LOG_PATH, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (l->fd < 0)
		return -1;
	for (;;) {
		n = read(l->fd, text, sizeof(text));
		if (n > 0)
			kernel_log_take(l, (struct bytes){ text, (size_t)n });
		if (n > 0 || (n < 0 && errno == EINTR))
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		kernel_log_gap(l);
		if (n == 0 || errno != EPIPE) /* that: what came meanwhile is overwritten */
			return -1;
	}
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
	uint64_t ticks, began_ms, now_ms = time_boot_ms();
	struct err gone;

	if (proc_stat_field(host_pid, START_FIELD, &ticks, &gone) < 0)
		return UINT64_MAX;
	began_ms = ticks * 1000 / (uint64_t)sysconf(_SC_CLK_TCK);
	return began_ms < now_ms ? (now_ms + 1 - began_ms) * 1000 : 1000;
}

static bool is_of(const char *group, const char *sandbox)
{
	size_t len = strlen(sandbox);

	for (const char *at = group; (at = strstr(at, sandbox)); at += len)
		if (at > group && at[-1] == '/' && (at[len] == '/' || at[len] == '\0'))
			return true;
	return false;
}

/*
 * A number alone is no process: of all that had it since, the one that was killed is the one
 * that was there before the kernel said so.
 */
enum presence kernel_log_killed(const struct kernel_log *l, const struct kernel_suspect *s)
{
	size_t known = l->count < KERNEL_LOG_KILLS ? l->count : KERNEL_LOG_KILLS;
	uint64_t namespace = namespace_of(s->init), now_us = time_mono_us(), alone = 0;
	bool doubt = !l->begun || l->last < l->from || l->last - l->from < LOG_LEAST_US ||
		     (l->count > KERNEL_LOG_KILLS &&
		      kernel_log_age(l, l->forgot_us, now_us) < LOG_LEAST_US);

	if (namespace == 0)
		return PRESENCE_UNKNOWN;
	for (size_t i = 0; i < known; i++) {
		const struct kernel_kill *k = &l->kills[i];
		uint64_t age = kernel_log_age(l, k->at_us, now_us);
		bool here = is_of(k->group, s->sandbox);

		alone += here && k->alone;
		if (age >= LOG_LEAST_US)
			continue;
		if (is_that(k->pid, namespace, s->pid) && process_age_us(k->pid) >= age)
			return PRESENCE_PRESENT;
		if (!k->alone && (here || k->group[0] == '\0') && k->read_boot_ms >= s->boot_ms)
			doubt = true;
	}
	return doubt && alone < s->kills ? PRESENCE_UNKNOWN : PRESENCE_ABSENT;
}

bool kernel_log_names(const struct kernel_log *l, pid_t host_pid)
{
	size_t known = l->count < KERNEL_LOG_KILLS ? l->count : KERNEL_LOG_KILLS;
	uint64_t now_us = time_mono_us();

	for (size_t i = 0; i < known; i++)
		if (l->kills[i].pid == host_pid &&
		    kernel_log_age(l, l->kills[i].at_us, now_us) < LOG_LEAST_US)
			return true;
	return false;
}

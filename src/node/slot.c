#include "node/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/log.h"
#include "lib/packet.h"
#include "lib/time.h"
#include "node/task.h"
#include "node/veth.h"

#define BATCH_MAX 16
#define AGAIN_MS  1000

/* Zeroes are a fine beginning, and values of an earlier boot do no harm. */
struct slots_memory {
	uint32_t next;                       /* round robin: a number rests as long as it can */
	uint64_t rests_until_ms[SLOT_COUNT]; /* CLOCK_BOOTTIME */
};

/* Warm slots in the making: a child makes them and sends each descriptor as it comes. */
struct making {
	struct slots *slots;
	int theirs, ours; /* ends of one socket */
	uint32_t numbers[BATCH_MAX];
	size_t count;
};

bool slot_is_used(const struct slots *s, uint32_t number)
{
	return s->used[number / 8] >> number % 8 & 1;
}

static void set_used(struct slots *s, uint32_t number, bool used)
{
	uint8_t bit = (uint8_t)(1 << number % 8);

	s->used[number / 8] =
		(uint8_t)(used ? s->used[number / 8] | bit : s->used[number / 8] & ~bit);
}

static bool rests(const struct slots *s, uint32_t number, uint64_t now)
{
	uint64_t until = s->memory->rests_until_ms[number];

	return until > now && until - now <= SLOT_REST_MS;
}

/* A number that is not in use and does not rest. */
static int take(struct slots *s, uint32_t *ret, struct err *e)
{
	uint32_t from = s->memory->next % SLOT_COUNT;
	uint64_t now = time_boot_ms();

	for (uint32_t i = 0; i < SLOT_COUNT; i++) {
		uint32_t number = (from + i) % SLOT_COUNT;

		if (slot_is_used(s, number) || rests(s, number, now))
			continue;
		set_used(s, number, true);
		s->memory->next = number + 1;
		*ret = number;
		return 0;
	}
	return err_set(e, ERR_LIMIT, "this host has no slot left for one more sandbox");
}

int slot_claim(struct slots *s, uint32_t *number, int *netns, struct err *e)
{
	if (s->warm_count == 0) {
		if (take(s, number, e) < 0)
			return -1;
		*netns = -1;
	} else {
		*number = s->warm[0].number;
		*netns = s->warm[0].netns;
		memmove(&s->warm[0], &s->warm[1], --s->warm_count * sizeof(s->warm[0]));
	}
	if (s->warm_count <= s->wanted / 2)
		slots_warm_up(s);
	return 0;
}

void slot_keep(struct slots *s, uint32_t number)
{
	set_used(s, number, true);
}

void slot_rest(struct slots *s, uint32_t number)
{
	s->memory->rests_until_ms[number] = time_boot_ms() + SLOT_REST_MS;
	crash_point("node.slot-rests");
}

void slot_give_back(struct slots *s, uint32_t number)
{
	set_used(s, number, false);
}

/* ---- to keep some warm ---- */

static int send_own_netns(int sock, uint32_t number, struct err *e)
{
	cleanup(close_fd) int netns = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct packets out;
	struct buf data = buf_make(sizeof(number) + 1);
	int done;

	packets_init(&out);
	buf_add(&data, &number, sizeof(number));
	packets_add(&out, &data, netns);
	done = netns < 0 ? -1 : packets_flush(&out, sock);
	packets_done(&out);
	return done < 0 ? err_sys(e, errno, "send a network namespace") : 0;
}

/* In a child. If we die meanwhile, what it made dies with it. */
static int make_batch(void *arg, struct err *e)
{
	const struct making *m = arg;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (size_t i = 0; i < m->count; i++) {
		if (veth_make(m->slots->router, m->numbers[i], e) < 0 ||
		    send_own_netns(m->theirs, m->numbers[i], e) < 0)
			return -1;
		crash_point("node.slot-made");
	}
	return 0;
}

/* Was it to be made? Then it is not any more. */
static bool strike_off(struct making *m, uint32_t number)
{
	for (size_t i = 0; i < m->count; i++)
		if (m->numbers[i] == number) {
			m->numbers[i] = m->numbers[--m->count];
			return true;
		}
	return false;
}

static void take_warm(struct making *m)
{
	struct slots *s = m->slots;
	struct warm_slot got;

	while (packet_receive(m->ours, &got.number, sizeof(got.number), &got.netns) > 0)
		if (got.netns >= 0 && strike_off(m, got.number))
			s->warm[s->warm_count++] = got;
		else
			close_fd(&got.netns);
}

/* Numbers nothing was made for: free again at once, as no sandbox has ever had them. */
static void making_end(struct making *m)
{
	for (size_t i = 0; i < m->count; i++)
		set_used(m->slots, m->numbers[i], false);
	close_fd(&m->ours);
	close_fd(&m->theirs);
	m->slots->making = NULL;
	free(m);
}

static void on_again(uv_timer_t *timer)
{
	slots_warm_up(timer->data);
}

static void on_batch_done(struct task *task, int status)
{
	struct making *m = task->data;
	struct slots *s = m->slots;

	take_warm(m);
	if (m->count > 0)
		status = -1;
	making_end(m);
	if (status == 0)
		return slots_warm_up(s);
	log_event(LOG_WARN, "could not make network slots; trying again", NULL);
	uv_timer_start(&s->again, on_again, AGAIN_MS, 0);
}

static int batch_begin(struct making *m, struct err *e)
{
	struct task_work work = {
		.run = make_batch,
		.log = STDERR_FILENO,
		.on_done = on_batch_done,
		.data = m,
	};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return err_sys(e, errno, "socketpair");
	m->ours = ends[0];
	m->theirs = ends[1];
	return task_fork(m->slots->loop, &work, e);
}

void slots_warm_up(struct slots *s)
{
	struct making *m;
	struct err e;

	if (s->making || s->warm_count >= s->wanted || uv_is_active((uv_handle_t *)&s->again))
		return;
	m = xcalloc(1, sizeof(*m));
	m->slots = s;
	m->ours = m->theirs = -1;
	s->making = m;
	while (m->count < BATCH_MAX && s->warm_count + m->count < s->wanted &&
	       take(s, &m->numbers[m->count], &e) == 0)
		m->count++;
	if (m->count > 0 && batch_begin(m, &e) == 0)
		return;
	making_end(m);
	uv_timer_start(&s->again, on_again, AGAIN_MS, 0);
}

/* ---- life ---- */

int slots_open(struct slots *s, int run_fd, struct err *e)
{
	cleanup(close_fd) int fd =
		openat(run_fd, "slots", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	void *at;

	if (fd < 0 || ftruncate(fd, sizeof(*s->memory)) < 0)
		return err_sys(e, errno, "open slots");
	at = mmap(NULL, sizeof(*s->memory), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return err_sys(e, errno, "map slots");
	s->memory = at;
	uv_timer_init(s->loop, &s->again);
	s->again.data = s;
	return 0;
}

void slots_close(struct slots *s)
{
	if (!s->memory)
		return;
	uv_close((uv_handle_t *)&s->again, NULL);
	while (s->warm_count > 0)
		close_fd(&s->warm[--s->warm_count].netns);
	(void)munmap(s->memory, sizeof(*s->memory));
	s->memory = NULL;
}

#include "node/meter.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"
#include "node/node.h"
#include "node/userns.h"

#define FILE_MAX   (16 * 1024)
#define PROCS_MAX  (1024 * 1024)
#define CPU_PERIOD 100000
#define ROUNDS     3 /* over all processes: who forked meanwhile is found in the next */

enum counter_kind {
	COUNTER_NOW, /* what it holds */
	COUNTER_SUM,
	COUNTER_PEAK
};

/* clang-format off */
static const struct counter {
	const char *tree[2];	/* v1 controller, v2 */
	const char *file[2];
	const char *key[2];	/* NULL: the file is one number */
	uint64_t divide[2];
	enum counter_kind kind;
	bool some;		/* meter_read_some() reads it, too */
	size_t offset;
} counters[] = {
	{ { "cpuacct", "v2" }, { "cpuacct.usage", "cpu.stat" }, { NULL, "usage_usec" },
	  { 1000, 1 }, COUNTER_SUM, true, offsetof(struct node_usage, cpu_us) },
	{ { "memory", "v2" }, { "memory.usage_in_bytes", "memory.current" }, { NULL, NULL },
	  { 1, 1 }, COUNTER_NOW, false, offsetof(struct node_usage, memory_bytes) },
	{ { "memory", "v2" }, { "memory.max_usage_in_bytes", "memory.peak" }, { NULL, NULL },
	  { 1, 1 }, COUNTER_PEAK, false, offsetof(struct node_usage, memory_peak_bytes) },
	{ { "pids", "v2" }, { "pids.current", "pids.current" }, { NULL, NULL },
	  { 1, 1 }, COUNTER_NOW, false, offsetof(struct node_usage, pids) },
	{ { "pids", "v2" }, { "pids.peak", "pids.peak" }, { NULL, NULL },
	  { 1, 1 }, COUNTER_PEAK, false, offsetof(struct node_usage, pids_peak) },
	{ { "pids", "v2" }, { "pids.events", "pids.events" }, { "max", "max" },
	  { 1, 1 }, COUNTER_SUM, true, offsetof(struct node_usage, pids_refused) },
	{ { "memory", "v2" }, { "memory.oom_control", "memory.events" }, { "oom_kill", "oom_kill" },
	  { 1, 1 }, COUNTER_SUM, true, offsetof(struct node_usage, oom_kills) },
};
/* clang-format on */

/* "key number" on a line of its own; 0 if it is not there. */
static uint64_t keyed(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = text; (at = strstr(at, key)); at += len)
		if ((at == text || at[-1] == '\n') && at[len] == ' ')
			return strtoull(at + len + 1, NULL, 10);
	return 0;
}

static uint64_t *member(struct node_usage *u, const struct counter *c)
{
	return (uint64_t *)(void *)((char *)u + c->offset);
}

/* 0, if it is not counted here. */
static uint64_t read_counter(const struct cgroup_host *h, const char *name,
			     const struct counter *c)
{
	cleanup(buf_done) struct buf text = buf_make(FILE_MAX);
	int v = h->mode == CGROUP_V2;
	int tree = cgroup_tree(h, c->tree[v]);
	char path[256];
	struct err e;
	uint64_t n;

	cgroup_file(h, name, c->file[v], path, sizeof(path));
	if (tree < 0 || file_read(tree, path, &text, &e) < 0)
		return 0;
	n = c->key[v] ? keyed(buf_str(&text), c->key[v]) : strtoull(buf_str(&text), NULL, 10);
	return n / c->divide[v];
}

/* Which cgroup this is: no other has its number while the machine is up. 0: there is none. */
static uint64_t group_of(const struct allocation *a)
{
	const struct cgroup_host *h = &a->node->cgroups;
	int tree = cgroup_tree(h, counters[0].tree[h->mode == CGROUP_V2]);
	char path[256];
	struct stat st;

	cgroup_file(h, a->name, NULL, path, sizeof(path));
	if (tree < 0 || fstatat(tree, path, &st, 0) < 0)
		return 0;
	return st.st_ino;
}

static void look(const struct allocation *a, bool all, struct node_usage *ret)
{
	uint64_t group = group_of(a);

	*ret = a->used;
	ret->since_ms = a->made_ms;
	ret->memory_bytes = ret->pids = 0;
	for (size_t i = 0; i < array_len(counters); i++) {
		const struct counter *c = &counters[i];
		uint64_t *to = member(ret, c), n;

		if (!(all || c->some) || group == 0 || group == a->used_group)
			continue;
		n = read_counter(&a->node->cgroups, a->name, c);
		if (c->kind == COUNTER_PEAK)
			*to = n > *to ? n : *to;
		else
			*to += n;
	}
}

/* A kernel without peaks has at least what was seen. */
static void raise_peaks(struct node_usage *u)
{
	if (u->memory_peak_bytes < u->memory_bytes)
		u->memory_peak_bytes = u->memory_bytes;
	if (u->pids_peak < u->pids)
		u->pids_peak = u->pids;
}

void meter_read(const struct allocation *a, struct node_usage *ret)
{
	look(a, true, ret);
	raise_peaks(ret);
	ret->disk_bytes = pool_used(&a->node->pool, a->name);
}

void meter_read_some(const struct allocation *a, struct node_usage *ret)
{
	look(a, false, ret);
}

bool meter_ended_by_memory(const struct allocation *a)
{
	struct node_usage u;

	if (a->runtime->shows_guest)
		return false;
	look(a, false, &u);
	return u.oom_kills > a->used.oom_kills;
}

int meter_close(struct allocation *a, struct err *e)
{
	uint64_t group = group_of(a);

	if (group == 0 || group == a->used_group)
		return 0;
	meter_read(a, &a->used);
	a->used_group = group;
	if (allocation_save(a, e) < 0)
		return -1;
	crash_point("node.usage-kept");
	return 0;
}

uint64_t meter_host_cpu_us(const struct cgroup_host *h)
{
	return read_counter(h, "", &counters[0]);
}

/* ---- limits ---- */

static int poke(const struct allocation *a, const char *controller, const char *file,
		const char *text, struct err *e)
{
	const struct cgroup_host *h = &a->node->cgroups;
	int tree = cgroup_tree(h, h->mode == CGROUP_V2 ? "v2" : controller);
	char path[256];

	if (tree < 0)
		return err_set(e, ERR_UNSUPPORTED, "this host has no %s cgroups", controller);
	return file_poke(tree, cgroup_file(h, a->name, file, path, sizeof(path)), text, e);
}

static int too_much(uint64_t holds, uint64_t limit, struct err *e)
{
	err_set(e, ERR_CONFLICT, "it holds %" PRIu64 " MB of memory and cannot go down to %" PRIu64,
		holds >> 20, limit >> 20);
	return err_fix(e, "End what uses the memory first, or give a larger limit.");
}

static uint64_t memory_now(const struct allocation *a)
{
	struct node_usage u;

	look(a, true, &u);
	return u.memory_bytes;
}

/* Memory and swap together must never be less than memory: which goes first depends. */
static int limit_memory_v1(const struct allocation *a, const struct node_limits *from,
			   uint64_t bytes, struct err *e)
{
	static const char *const files[] = { "memory.limit_in_bytes",
					     "memory.memsw.limit_in_bytes" };
	bool more = bytes > from->memory_bytes;
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	for (int i = 0; i < 2; i++) {
		const char *file = files[more ? 1 - i : i];

		if (poke(a, "memory", file, text, e) == 0)
			continue;
		if (e->code == ERR_NOT_FOUND && file == files[1])
			continue; /* a kernel that does not count swap */
		return more ? -1 : too_much(memory_now(a), bytes, e);
	}
	return 0;
}

/* A limit below what it holds would kill: first it is asked to give back, then looked at. */
static int limit_memory_v2(const struct allocation *a, uint64_t bytes, struct err *e)
{
	uint64_t now = memory_now(a);
	char text[24];
	struct err ignored; /* an older kernel, or not all could be given back: seen below */

	if (now > bytes) {
		snprintf(text, sizeof(text), "%" PRIu64, now - bytes);
		(void)!poke(a, "memory", "memory.reclaim", text, &ignored);
		now = memory_now(a);
	}
	if (now > bytes)
		return too_much(now, bytes, e);
	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	return poke(a, "memory", "memory.max", text, e);
}

static int limit_memory(const struct allocation *a, const struct node_limits *from,
			const struct node_limits *to, struct err *e)
{
	if (a->node->cgroups.mode == CGROUP_V2)
		return limit_memory_v2(a, to->memory_bytes, e);
	return limit_memory_v1(a, from, to->memory_bytes, e);
}

/* Held bytes are not given back when the limit goes down: then it stays as it was. */
static int limit_sockets(const struct allocation *a, const struct node_limits *from,
			 const struct node_limits *to, struct err *e)
{
	uint64_t bytes = cgroup_socket_bytes(&a->node->cgroups, to->memory_bytes);
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, bytes);
	if (bytes == 0 || poke(a, "memory", CGROUP_SOCKETS, text, e) == 0)
		return 0;
	if (to->memory_bytes >= from->memory_bytes)
		return -1;
	err_set(e, ERR_CONFLICT, "its sockets hold more than the %" PRIu64 " MB they may then",
		bytes >> 20);
	return err_fix(e, "Read or close them first, or give a larger limit of memory.");
}

static int limit_cpu(const struct allocation *a, const struct node_limits *from,
		     const struct node_limits *to, struct err *e)
{
	uint64_t quota = (uint64_t)to->cpu_milli * CPU_PERIOD / 1000;
	bool v2 = a->node->cgroups.mode == CGROUP_V2;
	char text[48];

	(void)from;
	snprintf(text, sizeof(text), "%" PRIu64, quota);
	if (v2)
		snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD);
	return poke(a, "cpu", v2 ? "cpu.max" : "cpu.cfs_quota_us", text, e);
}

static int limit_pids(const struct allocation *a, const struct node_limits *from,
		      const struct node_limits *to, struct err *e)
{
	char text[16];

	(void)from;
	snprintf(text, sizeof(text), "%u", runtime_pids(a->runtime, to->pids));
	return poke(a, "pids", "pids.max", text, e);
}

static int no_files(uint64_t pid, struct err *e)
{
	if (errno != EPERM)
		return err_sys(e, errno, "limit the open files of process %" PRIu64, pid);
	return err_set(e, ERR_UNSUPPORTED, "open_files cannot be raised without CAP_SYS_RESOURCE");
}

static int limit_files_once(const struct allocation *a, uint32_t files, struct err *e)
{
	const struct cgroup_host *h = &a->node->cgroups;
	cleanup(buf_done) struct buf text = buf_make(PROCS_MAX);
	struct rlimit limit = { files, files };
	char path[256], *save = NULL;
	struct err bad;
	uint64_t pid;

	if (file_read(cgroup_tree(h, h->mode == CGROUP_V2 ? "v2" : "pids"),
		      cgroup_file(h, a->name, "cgroup.procs", path, sizeof(path)), &text, e) < 0)
		return -1;
	for (char *word = strtok_r(text.data, "\n", &save); word;
	     word = strtok_r(NULL, "\n", &save))
		if (str_u64(word, &pid, &bad) == 0 && cgroup_holds(h, a->name, (int)pid) &&
		    userns_prlimit(allocation_first_id(a), (pid_t)pid, RLIMIT_NOFILE, limit) < 0 &&
		    errno != ESRCH)
			return no_files(pid, e);
	return 0;
}

static int limit_files(const struct allocation *a, const struct node_limits *from,
		       const struct node_limits *to, struct err *e)
{
	if (to->open_files == from->open_files)
		return 0;
	if (!a->runtime->pid_is_init)
		return err_set(e, ERR_UNSUPPORTED,
			       "%s cannot change open_files of a sandbox that runs",
			       a->runtime->name);
	for (int i = 0; i < ROUNDS; i++)
		if (limit_files_once(a, to->open_files, e) < 0)
			return -1;
	return 0;
}

static int limit_disk(const struct allocation *a, const struct node_limits *from,
		      const struct node_limits *to, struct err *e)
{
	(void)from;
	return pool_limit(&a->node->pool, a->name, to->disk_bytes, e);
}

static int (*const steps[])(const struct allocation *a, const struct node_limits *from,
			    const struct node_limits *to, struct err *e) = {
	limit_memory,
	limit_sockets,
	limit_files,
	limit_cpu,
	limit_pids,
	limit_disk,
};

/* All of them, or as it was. */
int meter_limit(const struct allocation *a, const struct node_limits *to, struct err *e)
{
	const struct node_limits *from = &a->spec.limits;
	struct err ignored;

	for (size_t i = 0; i < array_len(steps); i++) {
		if (steps[i](a, from, to, e) == 0)
			continue;
		while (i-- > 0)
			(void)!steps[i](a, to, from, &ignored);
		return -1;
	}
	crash_point("node.limited");
	return 0;
}

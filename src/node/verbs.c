#include "node/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"
#include "lib/time.h"
#include "node/fence.h"
#include "node/init-socket.h"
#include "node/meter.h"
#include "node/nft-allowlist.h"
#include "node/node.h"
#include "node/presence.h"
#include "node/veth.h"

static enum presence record_presence(const struct node *n, const struct runtime *r,
				     const char *name)
{
	cleanup(strv_done) struct strv records = { 0 };
	enum presence all = PRESENCE_ABSENT;
	char path[320];

	r->records(&records, name);
	for (size_t i = 0; i < records.len; i++) {
		snprintf(path, sizeof(path), "%s/%s", r->name, records.items[i]);
		all = presence_sum(all, presence_at(n->engine_fd, path));
	}
	return all;
}

/* Where no record of ours says which engine it was, all are looked at. */
static enum presence engine_presence(const struct node *n, const struct allocation *a,
				     const char *name)
{
	enum presence all = PRESENCE_ABSENT;

	for (size_t i = 0; runtime_at(i); i++)
		if (!a || a->runtime == runtime_at(i))
			all = presence_sum(all, record_presence(n, runtime_at(i), name));
	return all;
}

static enum presence link_presence(struct node *n, const struct allocation *a, const char *name)
{
	uint32_t slot;

	/* Where no record of ours says which slot it was, all links are looked at. */
	if (!a)
		return veth_find(&n->router.links, name, &slot);
	return presence_sum(veth_observe(n->router.probe, a->slot),
			    nft_allowlist_observe(&n->router.rules, a->slot));
}

static enum presence sum_up(const struct node_observation *o)
{
	const uint32_t parts[] = { o->process, o->cgroup, o->disk, o->runtime, o->link };
	enum presence all = PRESENCE_ABSENT;

	for (size_t i = 0; i < array_len(parts); i++)
		all = presence_sum(all, (enum presence)parts[i]);
	return all;
}

void allocation_observe(struct node *n, const char *sandbox, uint64_t generation,
			struct node_observation *ret)
{
	const struct allocation *a = allocation_find(n->all, sandbox);
	struct node_observation o = { .generation = generation, .observed_ms = time_wall_ms() };
	enum presence cgroup, process;
	char name[ALLOCATION_NAME_SIZE];
	struct err e;

	snprintf(o.sandbox, sizeof(o.sandbox), "%s", sandbox);
	if (a && a->spec.generation != generation)
		a = NULL;
	if (allocation_name(sandbox, generation, name, &e) == 0) {
		cgroup_observe(&n->cgroups, name, &cgroup, &process);
		o.cgroup = cgroup;
		o.process = process;
		o.disk = pool_observe(&n->pool, name);
		o.runtime = engine_presence(n, a, name);
		o.link = link_presence(n, a, name);
		o.record = presence_at(n->alloc_fd, name);
	}
	if (a) {
		veth_address_text(a->slot, o.address);
		o.used = a->used;
		o.used.since_ms = a->made_ms;
	}
	o.presence = sum_up(&o);
	o.ready = a && a->phase == PHASE_RUNNING && o.process == PRESENCE_PRESENT;
	/* Its end may be seen here before it was told to us. */
	if (a && (a->phase == PHASE_ENDED ||
		  (a->phase == PHASE_RUNNING && o.process == PRESENCE_ABSENT)))
		o.ended = meter_ended_by_memory(a) ? ENDED_BY_MEMORY : ENDED;
	o.life = a ? a->life : 0;
	o.protocol = a ? a->protocol : 0;
	snprintf(o.detail, sizeof(o.detail), "%s", a ? phase_name(a->phase) : "no record here");
	*ret = o;
}

void allocation_log(const struct allocation *a, enum log_level level, const char *msg,
		    const char *why)
{
	const struct call *c = a->call;

	log_event(level, msg, "sandbox", a->spec.sandbox, "allocation", a->name, "phase",
		  phase_name(a->phase), "request_id", c ? c->ask.target.request : NULL, "why", why,
		  NULL);
}

int allocation_claim(struct allocation *a, struct call *c, struct err *e)
{
	if (a->call)
		return err_set(e, ERR_BUSY, "%s is %s", a->spec.sandbox, phase_name(a->phase));
	a->call = c;
	return 0;
}

void allocation_cut_off(struct allocation *a)
{
	struct err e;

	close_fd(&a->netns);
	a->netns = -1;
	/* the observation tells */
	if (nft_allowlist_remove(&a->node->router.rules, a->slot, &e) < 0)
		allocation_log(a, LOG_ERROR, "sandbox cannot be cut off from the network", e.msg);
	crash_point("node.cut-off");
}

struct call *allocation_release(struct allocation *a)
{
	struct call *done = a->call;

	a->call = NULL;
	a->task = NULL;
	return done;
}

static void verb_observe(struct call *c)
{
	struct node_observation o;

	allocation_observe(c->node, c->ask.target.sandbox, c->ask.target.generation, &o);
	call_reply(c, &o, -1);
}

static void verb_connect(struct call *c)
{
	cleanup(close_fd) int fd = -1;
	struct allocation *a;
	struct node_usage u;
	struct err e;

	if (allocation_target(c->node->all, &c->ask.target, &a, &e) < 0)
		return call_fail(c, &e);
	if (a->phase != PHASE_RUNNING) {
		err_set(&e, ERR_CONFLICT, "%s is not running: %s", a->spec.sandbox,
			phase_name(a->phase));
		return call_fail(c, &e);
	}
	if (init_socket_understands(a, &e) < 0 || init_socket_connect(a, &fd, &e) < 0)
		return call_fail(c, &e);
	crash_point("node.connected");
	meter_read_some(a, &u); /* before the first command can begin */
	call_reply(c, &u, fd);
}

void verb_tell_ended(const struct allocation *a)
{
	struct node_observation o;

	allocation_observe(a->node, a->spec.sandbox, a->spec.generation, &o);
	for (struct call *c = a->node->followers; c; c = c->next_waiter)
		call_part(c, &o);
	verb_news(a->node, a->name);
}

void verb_forget_followers(struct node *n)
{
	static const struct node_nothing nothing;
	struct call **at = &n->followers;

	while (*at) {
		struct call *c = *at;

		if (c->link) {
			at = &c->next_waiter;
			continue;
		}
		*at = c->next_waiter;
		call_reply(c, &nothing, -1); /* it has no link: this only ends the call */
	}
}

static uint64_t memory_available(void)
{
	cleanup(buf_done) struct buf text = buf_make(8192);
	const char *at;
	struct err e;
	uint64_t kb = 0;

	if (file_read(AT_FDCWD, "/proc/meminfo", &text, &e) < 0)
		return 0;
	at = strstr(buf_str(&text), "MemAvailable:");
	for (at = at ? at + strcspn(at, "0123456789") : ""; *at >= '0' && *at <= '9'; at++)
		kb = kb * 10 + (uint64_t)(*at - '0');
	return kb * 1024;
}

/* Half of the host's: the rest is for the others, and for the host. */
static uint32_t most_pids(void)
{
	uint64_t all = 0;
	struct err ignored;

	if (file_read_u64(AT_FDCWD, "/proc/sys/kernel/pid_max", &all, &ignored) < 0)
		return 0;
	return (uint32_t)(all / 2);
}

static bool may_raise_limits(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };

	return syscall(SYS_capget, &head, data) == 0 &&
	       data[0].effective & 1U << CAP_SYS_RESOURCE;
}

static uint32_t most_open_files(void)
{
	struct rlimit own = { 0 };
	uint64_t most = 0;
	struct err ignored;

	if (!may_raise_limits() && getrlimit(RLIMIT_NOFILE, &own) == 0)
		most = own.rlim_max;
	else if (file_read_u64(AT_FDCWD, "/proc/sys/fs/nr_open", &most, &ignored) < 0)
		return 0;
	return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

static void verb_capacity(struct call *c)
{
	const struct node *n = c->node;
	struct node_capacity r = { .version = NODE_VERSION, .sandboxes = n->all->count };
	struct sysinfo si;

	if (sysinfo(&si) == 0)
		r.memory_total = (uint64_t)si.totalram * si.mem_unit;
	r.memory_available = memory_available();
	r.cpus = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	pool_space(&n->pool, &r.disk_total, &r.disk_available);
	snprintf(r.cgroups, sizeof(r.cgroups), "%s", cgroup_mode_name(n->cgroups.mode));
	runtime_installed(r.runtimes, sizeof(r.runtimes));
	r.cpu_us = meter_host_cpu_us(&n->cgroups);
	r.pids = most_pids();
	r.open_files = most_open_files();
	call_reply(c, &r, -1);
}

static void verb_usage(struct call *c)
{
	struct allocation *a;
	struct node_usage u;
	struct err e;

	if (allocation_target(c->node->all, &c->ask.target, &a, &e) < 0)
		return call_fail(c, &e);
	meter_read(a, &u);
	call_reply(c, &u, -1);
}

static enum presence killed_for_memory(struct allocation *a, const struct node_killed *ask,
				       struct kernel_log *log)
{
	struct kernel_suspect one = { .sandbox = a->name,
				      .init = a->pid,
				      .pid = ask->pid,
				      .boot_ms = ask->boot_ms };
	struct node_usage u;

	if (!a->runtime->shows_guest || kernel_log_read(log) < 0)
		return PRESENCE_UNKNOWN;
	if (ask->pid == 0)
		return a->pid > 0 && kernel_log_names(log, a->pid) ? PRESENCE_PRESENT
								   : PRESENCE_ABSENT;
	if (a->pid <= 0)
		return PRESENCE_UNKNOWN;
	meter_read_some(a, &u);
	one.kills = u.oom_kills;
	return kernel_log_killed(log, &one);
}

static void verb_killed(struct call *c)
{
	struct node_killer r = { .memory = PRESENCE_UNKNOWN };
	struct allocation *a;
	struct err e;

	if (allocation_target(c->node->all, &c->ask.target, &a, &e) < 0)
		return call_fail(c, &e);
	r.memory = killed_for_memory(a, &c->ask.killed, &c->node->kernel_log);
	call_reply(c, &r, -1);
}

/* clang-format off */
static void (*const verbs[NODE_VERB_COUNT])(struct call *c) = {
	[NODE_IMAGE]	 = verb_image,
	[NODE_CREATE]	 = verb_create,
	[NODE_START]	 = verb_start,
	[NODE_OBSERVE]	 = verb_observe,
	[NODE_CONNECT]	 = verb_connect,
	[NODE_STOP]	 = verb_stop,
	[NODE_DESTROY]	 = verb_destroy,
	[NODE_INVENTORY] = verb_inventory,
	[NODE_CAPACITY]	 = verb_capacity,
	[NODE_USAGE]	 = verb_usage,
	[NODE_LEASE]	 = verb_lease,
	[NODE_LIMIT]	 = verb_limit,
	[NODE_SYNC]	 = verb_sync,
	[NODE_GROUP]	 = verb_group,
	[NODE_KILLED]	 = verb_killed,
	[NODE_PROCESSES] = verb_processes,
};
/* clang-format on */

void verb_begin(struct call *c)
{
	struct err e;

	if (fence_check(c, &e) < 0)
		return call_fail(c, &e);
	verbs[c->verb](c);
}

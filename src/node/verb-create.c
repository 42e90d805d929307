/* create: write it down, then give it a disk. start: then an engine, then a hello. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"
#include "node/bundle.h"
#include "node/devices.h"
#include "node/idmap.h"
#include "node/image.h"
#include "node/init-socket.h"
#include "node/nft-allowlist.h"
#include "node/node.h"
#include "node/process.h"
#include "node/task.h"
#include "node/userns.h"
#include "node/verbs.h"
#include "node/veth.h"
#include "proto/image.h"

#define CONFIG_MAX     (512 * 1024)
#define INIT_ARGS_MAX  8
#define INIT_MORE      4
#define OPEN_FILES_MAX 65536

/*
 * The engine is started in a mount namespace of its own, with everything it
 * needs under one place every host has. Nothing of it is ever mounted where
 * others could see it, and it goes away with the engine.
 */
#define STAGE          "/mnt"

static void answer(struct allocation *a)
{
	struct call *c = allocation_release(a);
	struct node_observation o;

	allocation_observe(a->node, a->spec.sandbox, a->spec.generation, &o);
	call_reply(c, &o, -1);
	crash_point("node.answered");
	allocation_go_on(take_ptr(a->waiting), NULL);
}

static void give_up(struct allocation *a, enum phase phase, const struct err *why)
{
	struct call *c;

	a->phase = phase;
	if (phase == PHASE_ENDED)
		allocation_cut_off(a);
	allocation_log(a, LOG_WARN, "sandbox could not be brought up", why->msg);
	c = allocation_release(a);
	call_fail(c, why);
	allocation_go_on(take_ptr(a->waiting), NULL);
}

/* A child of ours failed: it said why, or it was too slow to. */
static void why_it_failed(const struct task *task, enum step s, const char *what, int status,
			  struct err *e)
{
	const struct allocation *a = task->data;

	if (task->timed_out)
		(void)step_too_long(&a->node->steps, s, e);
	else
		process_log_error(a, what, status, e);
}

/* In a child: the snapshot and its limit wait for the disk. */
static int make_disk(void *arg, struct err *e)
{
	const struct allocation *a = arg;
	const struct pool *p = &a->node->pool;
	cleanup(close_fd) int source = -1;

	if (image_open_rootfs(a->node, a->spec.image, &source, e) < 0 ||
	    pool_subvolume_remove(p->sandboxes, a->name, e) < 0)
		return -1;
	crash_point("node.old-disk-removed");
	if (pool_subvolume_snapshot(source, p->sandboxes, a->name, e) < 0)
		return -1;
	crash_point("node.snapshot-made");
	if (a->spec.limits.disk_bytes && pool_limit(p, a->name, a->spec.limits.disk_bytes, e) < 0)
		return -1;
	crash_point("node.limit-set");
	return 0;
}

static void on_disk_made(struct task *task, int status)
{
	struct allocation *a = task->data;
	struct err e = { 0 };

	if (status != 0) {
		why_it_failed(task, STEP_DISK, "make the disk", status, &e);
		give_up(a, PHASE_ENDED, &e);
		return;
	}
	a->phase = PHASE_BUILT;
	allocation_log(a, LOG_INFO, "sandbox built", NULL);
	crash_point("node.disk-made");
	answer(a);
}

/* 0: as many as we may give away ourselves, up to what any sandbox needs. */
static uint32_t open_files(const struct allocation *a)
{
	struct rlimit limit = { 0 };

	if (a->spec.limits.open_files)
		return a->spec.limits.open_files;
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_max < OPEN_FILES_MAX ? (uint32_t)limit.rlim_max : OPEN_FILES_MAX;
}

/* What every command expects and few images say. */
static void add_home(struct strv *env)
{
	for (size_t i = 0; i < env->len; i++)
		if (str_starts(env->items[i], "HOME="))
			return;
	strv_add(env, "HOME=/root");
}

/* What berth-init is started with: at most INIT_MORE of ours, and the end. */
static void init_args(const struct allocation *a, const struct image_config *image,
		      const char *args[INIT_ARGS_MAX])
{
	size_t n = 0;

	for (; a->runtime->init_args[n] && n < INIT_ARGS_MAX - INIT_MORE - 1; n++)
		args[n] = a->runtime->init_args[n];
	if (image->user[0]) {
		args[n++] = "--user";
		args[n++] = image->user;
	}
	if (a->spec.trust[0]) { /* the last: init makes it empty */
		args[n++] = "--trust";
		args[n++] = a->spec.trust;
	}
	args[n] = NULL;
}

static int write_config(struct allocation *a, struct err *e)
{
	const char *args[INIT_ARGS_MAX];
	cleanup(buf_done) struct buf text = buf_make(CONFIG_MAX);
	cleanup(image_config_done) struct image_config image = { 0 };
	cleanup(close_fd) int dir = -1;
	char cgroup[256];
	struct bundle b = {
		.name = a->name,
		.hostname = "sandbox",
		.rootfs = STAGE "/rootfs",
		.cgroup = cgroup,
		.init = STAGE "/init",
		.sys = a->runtime->needs_sys ? STAGE "/sys" : NULL,
		.userns = a->runtime->joins_userns ? STAGE "/user" : NULL,
		.socket_dir = a->runtime->passes_socket ? NULL : STAGE "/sock",
		.env = &image.env,
		.cwd = image.cwd,
		.args = args,
		.init_mounts = a->runtime->init_mounts,
		.filter = buf_str(&a->node->filter),
		.first_id = allocation_first_id(a),
		.memory_bytes = a->spec.limits.memory_bytes,
		.socket_bytes = cgroup_socket_bytes(&a->node->cgroups, a->spec.limits.memory_bytes),
		.cpu_milli = a->spec.limits.cpu_milli,
		.pids = runtime_pids(a->runtime, a->spec.limits.pids),
		.open_files = open_files(a),
	};

	if (image_read_config(a->node, a->spec.image, &image, e) < 0)
		return -1;
	add_home(&image.env);
	init_args(a, &image, args);
	if (!cgroup_path(&a->node->cgroups, a->name, cgroup, sizeof(cgroup)))
		return err_set(e, ERR_INVALID, "cgroup path of %s is too long", a->name);
	bundle_write(&text, &b);
	if (buf_overflowed(&text))
		return err_set(e, ERR_TOO_LARGE, "the image's environment is too large");
	if (dir_open(a->dirfd, "bundle", 0700, &dir, e) < 0)
		return -1;
	return file_replace_fast(dir, "config.json", text.data, text.len, e);
}

/*
 * A berth-node that was killed may have left an engine that came up after it:
 * a new disk must not be made under its feet, nor an old one given to two.
 */
static bool is_half_made(const struct allocation *a, bool keep_disk)
{
	struct node_observation o;

	if (a->call || a->phase != PHASE_ENDED)
		return false;
	allocation_observe(a->node, a->spec.sandbox, a->spec.generation, &o);
	if (keep_disk) /* stopped: the rest is cleared away */
		return o.process != PRESENCE_ABSENT;
	return o.process != PRESENCE_ABSENT || o.cgroup != PRESENCE_ABSENT ||
	       o.runtime != PRESENCE_ABSENT;
}

/* The one that is there, or a new one, claimed for this call; NULL if it cannot be. */
static struct allocation *create(struct call *c, struct err *e)
{
	struct node *n = c->node;
	struct allocation *a = allocation_find(n->all, c->ask.create.sandbox);

	if (a && a->spec.generation != c->ask.create.generation) {
		err_set(e, ERR_CONFLICT, "another generation of %s is here", a->spec.sandbox);
		return NULL;
	}
	if (!a && (image_exists(n, c->ask.create.image, e) < 0 ||
		   allocation_make(n, &c->ask.create, NULL, &a, e) < 0))
		return NULL;
	if (!a || allocation_claim(a, c, e) < 0)
		return NULL;
	return a;
}

/* In a child: the limit waits for the disk. */
static int limit_disk(void *arg, struct err *e)
{
	const struct allocation *a = arg;
	uint64_t bytes = a->spec.limits.disk_bytes;

	return bytes ? pool_limit(&a->node->pool, a->name, bytes, e) : 0;
}

static void on_disk_limited(struct task *task, int status)
{
	struct allocation *a = task->data;
	struct err e = { 0 };

	if (status != 0) {
		why_it_failed(task, STEP_DISK, "limit the disk", status, &e);
		give_up(a, PHASE_ENDED, &e);
		return;
	}
	crash_point("node.disk-kept");
	a->phase = PHASE_BUILT;
	allocation_log(a, LOG_INFO, "sandbox built on the disk of before", NULL);
	answer(a);
}

/* It was stopped and is to run again: on the disk it had, or not at all. */
static int reuse_disk(struct allocation *a, struct err *e)
{
	struct task_work work = { .run = limit_disk, .on_done = on_disk_limited, .data = a };
	cleanup(close_fd) int log = -1; /* the child has its own */

	if (allocation_remove_traces(a, e) < 0)
		return -1;
	if (pool_observe(&a->node->pool, a->name) != PRESENCE_PRESENT)
		return err_set(e, ERR_NOT_FOUND, "the disk of %s is not there", a->spec.sandbox);
	log = process_log_open(a);
	work.log = log;
	work.deadline_ms = a->node->steps.ms[STEP_DISK];
	return task_fork(&a->node->loop, &work, e);
}

void verb_create(struct call *c)
{
	struct err e = { 0 };
	struct allocation *a = allocation_find(c->node->all, c->ask.create.sandbox);
	struct task_work work = { .run = make_disk, .on_done = on_disk_made };

	if (a && a->spec.generation < c->ask.create.generation)
		return allocation_supersede(a, c, false);
	if (a && a->spec.generation == c->ask.create.generation &&
	    is_half_made(a, c->ask.create.keep_disk))
		return allocation_supersede(a, c, c->ask.create.keep_disk);
	a = work.data = create(c, &e);
	if (!a)
		return call_fail(c, &e);
	if (a->phase == PHASE_BUILT || a->phase == PHASE_RUNNING)
		return answer(a); /* asked twice */
	a->phase = PHASE_BUILDING;
	a->life++;
	if (c->ask.create.keep_disk) {
		a->spec.limits = c->ask.create.limits; /* changed while it did not run */
		if (allocation_save(a, &e) < 0 || write_config(a, &e) < 0 || reuse_disk(a, &e) < 0)
			give_up(a, PHASE_ENDED, &e);
		return;
	}
	work.log = process_log_open(a);
	work.deadline_ms = c->node->steps.ms[STEP_DISK];
	if (write_config(a, &e) < 0 ||
	    task_fork(&c->node->loop, &work, &e) < 0)
		give_up(a, PHASE_ENDED, &e);
	close_fd(&work.log);
}

static int bind_mount(const char *source, const char *target, bool directory, struct err *e)
{
	if (directory ? mkdir(target, 0755) < 0 : mknod(target, S_IFREG | 0644, 0) < 0)
		return err_sys(e, errno, "make %s", target);
	if (mount(source, target, NULL, MS_BIND, NULL) < 0)
		return err_sys(e, errno, "bind %s on %s", source, target);
	return 0;
}

/* The slot's network namespace, made ahead or made now. From here on it lives as long as we do. */
static int enter_network(const struct allocation *a, struct err *e)
{
	int router = a->node->router.netns;

	if (a->netns >= 0 && setns(a->netns, CLONE_NEWNET) < 0)
		return err_sys(e, errno, "enter the network namespace");
	if (a->netns < 0 && veth_make(router, a->slot, e) < 0)
		return -1;
	if (veth_label(router, a->slot, a->name, e) < 0)
		return -1;
	crash_point("node.network-entered");
	return 0;
}

/* Root inside has no power over its network, so crun could not mount it itself. */
static int stage_sys(struct err *e)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;

	if (mkdir(STAGE "/sys", 0755) < 0 || mount("sysfs", STAGE "/sys", "sysfs", flags, NULL) < 0)
		return err_sys(e, errno, "mount " STAGE "/sys");
	return 0;
}

/*
 * Debian's runsc takes a network namespace for the host's own if it sees a file in
 * /proc/sys/net/core that newer kernels show everywhere: it is not to see it. The second /proc
 * is for the kernel, which lets a process mount one only where another is to be seen whole.
 */
static int stage_proc(struct err *e)
{
	unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (mkdir(STAGE "/proc", 0700) < 0 || mount("proc", STAGE "/proc", "proc", flags, NULL) < 0)
		return err_sys(e, errno, "mount " STAGE "/proc");
	if (mount("berth", "/proc/sys/net/core", "tmpfs", flags | MS_RDONLY, NULL) < 0)
		return err_sys(e, errno, "hide /proc/sys/net/core");
	return 0;
}

/* The rootfs through the ids of a user namespace, and that namespace where the engine finds it. */
static int stage_rootfs(const struct allocation *a, struct err *e)
{
	cleanup(close_fd) int userns = -1;
	char path[4096];

	snprintf(path, sizeof(path), "%s/sandboxes/%s", a->node->pool.mount, a->name);
	if (mkdir(STAGE "/rootfs", 0755) < 0)
		return err_sys(e, errno, "make " STAGE "/rootfs");
	if (userns_make(allocation_first_id(a), &userns, e) < 0 ||
	    idmap_mount(path, STAGE "/rootfs", userns, e) < 0)
		return -1;
	if (!a->runtime->joins_userns)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", userns);
	return bind_mount(path, STAGE "/user", false, e);
}

static int stage(const struct allocation *a, struct err *e)
{
	if (cgroup_enter_launch(&a->node->cgroups, a->name, e) < 0)
		return -1;
	crash_point("node.launch-entered");
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, errno, "mount namespace");
	if (enter_network(a, e) < 0)
		return -1;
	if (mount("berth", STAGE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711,size=64k") < 0)
		return err_sys(e, errno, "prepare " STAGE);
	if (stage_rootfs(a, e) < 0 || devices_stage(STAGE "/dev", e) < 0 ||
	    bind_mount(a->node->settings.init, STAGE "/init", false, e) < 0)
		return -1;
	if (a->runtime->needs_sys ? stage_sys(e) < 0 : stage_proc(e) < 0)
		return -1;
	if (a->runtime->passes_socket)
		return 0;
	/* A fresh disk still, where init_socket_share() has just looked. */
	return bind_mount(STAGE "/rootfs/.berth/sock", STAGE "/sock", true, e);
}

/*
 * In the child that becomes the engine. In the sandbox's cgroup it may be frozen
 * at any moment; if berth-node dies then, the next one needs the lock that the
 * child has, too. So it dies with berth-node until it has let go of it.
 */
static int prepare_engine(void *arg)
{
	const struct allocation *a = arg;
	struct err e;

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != a->node->pid)
		_exit(126);
	if (stage(a, &e) == 0) {
		crash_point("node.rootfs-mounted");
		close(a->node->lock_fd);
		(void)prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
		return 0;
	}
	dprintf(STDERR_FILENO, "%s\n", e.msg);
	_exit(126);
}

static void on_hello(struct allocation *a, const struct err *why)
{
	struct err e = { 0 };

	if (why && process_is_over(a) && process_ended_early(a, &e) < 0)
		why = &e;
	if (why)
		return give_up(a, PHASE_ENDED, why);
	crash_point("node.hello-heard");
	a->phase = PHASE_RUNNING;
	if (allocation_save(a, &e) < 0)
		return give_up(a, PHASE_ENDED, &e);
	allocation_log(a, LOG_INFO, "sandbox runs", NULL);
	answer(a);
}

static void on_engine_done(struct task *task, int status)
{
	struct allocation *a = task->data;
	struct err e = { 0 };

	a->task = NULL;
	close_fd(&a->netns); /* its processes have it now, or it is to end */
	a->netns = -1;
	if (status != 0) {
		why_it_failed(task, STEP_ENGINE, a->runtime->name, status, &e);
		return give_up(a, PHASE_ENDED, &e);
	}
	crash_point("node.engine-done");
	cgroup_end_launch(&a->node->cgroups, a->name);
	if (process_find(a, &e) < 0 || process_watch(a, &e) < 0)
		return give_up(a, PHASE_ENDED, &e);
	crash_point("node.process-found");
	init_socket_hello(a, on_hello);
}

/* What to execute: a sealed copy where that helps, or 0 for the program on PATH. */
static int engine_program(struct allocation *a)
{
	char path[4096];
	int fd;

	if (!a->runtime->seals_itself || !runtime_program(a->runtime, path, sizeof(path)))
		return 0;
	fd = sealed_exe_of(&a->node->engine, path);
	return fd > 0 ? fd : 0;
}

/* For an engine to read nothing from. Not /dev/null: engines give what they have to the guest. */
static int empty_input(struct err *e)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_sys(e, errno, "pipe");
	close(ends[1]);
	return ends[0];
}

static int start_engine(struct allocation *a, struct err *e)
{
	cleanup(close_fd) int log = process_log_open(a), input = empty_input(e), listener = -1;
	cleanup(strv_done) struct strv argv = { 0 };
	struct process_paths paths;
	struct task_end end = {
		.deadline_ms = a->node->steps.ms[STEP_ENGINE],
		.on_done = on_engine_done,
		.data = a,
	};
	struct proc_spec spec = { .in = input, .out = log, .err = log, .prepare = prepare_engine };

	if (input < 0)
		return -1;
	if (log < 0)
		return err_sys(e, errno, "open the log of %s", a->name);
	process_paths(a, &paths);
	a->runtime->run(&argv, &paths.runtime);
	spec.argv = (const char *const *)argv.items;
	spec.arg = a;
	spec.program = engine_program(a);
	if (a->runtime->passes_socket) {
		if (init_socket_listen(a, &listener, e) < 0)
			return -1;
		spec.pass[0] = listener;
		spec.pass_count = 1;
	} else if (init_socket_share(a, e) < 0) {
		return -1;
	}
	crash_point("node.socket-made");
	if (nft_allowlist_add(&a->node->router.rules, a->slot, e) < 0)
		return -1;
	crash_point("node.let-in");
	if (task_start(&a->node->loop, &spec, &end, &a->task, e) < 0)
		return -1;
	crash_point("node.engine-begun");
	return 0;
}

void verb_start(struct call *c)
{
	struct allocation *a;
	struct err e;

	if (allocation_target(c->node->all, &c->ask.target, &a, &e) < 0 ||
	    allocation_claim(a, c, &e) < 0)
		return call_fail(c, &e);
	if (a->phase == PHASE_RUNNING)
		return answer(a); /* asked twice */
	if (a->phase != PHASE_BUILT) {
		err_set(&e, ERR_CONFLICT, "%s cannot be started: %s", a->spec.sandbox,
			phase_name(a->phase));
		return give_up(a, a->phase, &e);
	}
	a->phase = PHASE_STARTING;
	if (start_engine(a, &e) < 0)
		give_up(a, PHASE_ENDED, &e);
}

#include "node/daemon.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/config.h"
#include "lib/crash.h"
#include "lib/file.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/str.h"
#include "lib/user.h"
#include "node/allocation.h"
#include "node/devices.h"
#include "node/egress-sockets.h"
#include "node/fence.h"
#include "node/image.h"
#include "node/link.h"
#include "node/nft-allowlist.h"
#include "node/process.h"
#include "node/seccomp.h"
#include "node/sync.h"
#include "node/userns.h"
#include "node/verbs.h"
#include "proto/frame.h"

#define ROUTER_LATE_MS   10000
#define ROUTER_AGAIN_MS  UINT64_C(500)
#define ROUTER_DOUBLINGS 7 /* of the wait: about a minute */
#define INIT_MAX         (16 * 1024 * 1024)

/* clang-format off */
const struct setting node_settings_table[] = {
	SETTING(CONFIG_STR, node_settings, instance, "main",
		"Name among others on the machine; part of every cgroup it makes."),
	SETTING(CONFIG_STR, node_settings, socket, "/run/berth/node.sock",
		"The Unix socket berthd talks to."),
	SETTING(CONFIG_STR, node_settings, socket_user, "berth",
		"The user berthd runs as; no other user but root is answered."),
	SETTING(CONFIG_STR, node_settings, run_dir, "/run/berth/node",
		"Where what runs now is written down; need not survive a reboot."),
	SETTING(CONFIG_STR, node_settings, pool, "/var/lib/berth/pool.img",
		"The btrfs of all sandboxes: a block device, or a file (made if missing)."),
	SETTING(CONFIG_SIZE, node_settings, pool_size, "20g",
		"How large a new pool file is; it takes only the space that is used."),
	SETTING(CONFIG_STR, node_settings, init, "/usr/libexec/berth/berth-init",
		"The program that becomes pid 1 of every sandbox."),
	SETTING(CONFIG_STR, node_settings, image_helper, "/usr/libexec/berth/berth-image",
		"The program that pulls and unpacks images."),
	SETTING(CONFIG_SIZE, node_settings, image_bytes, "20g",
		"What one image may hold unpacked; never more than the pool has room for."),
	SETTING(CONFIG_STR, node_settings, insecure_registries, "localhost 127.0.0.1",
		"Registries that are spoken to without TLS."),
	SETTING(CONFIG_INT, node_settings, first_id, "1000000",
		"The first user id of the first sandbox; each takes 65,536 from there on."),
	SETTING(CONFIG_STR, node_settings, runsc_platform, "ptrace",
		"How gVisor catches system calls: ptrace (Debian's build) or systrap (newer)."),
	SETTING(CONFIG_STR, node_settings, egress_socket, "/run/berth/egress.sock",
		"The Unix socket where berth-egress gets the sockets it serves sandboxes by."),
	SETTING(CONFIG_STR, node_settings, egress_user, "berth-egress",
		"The user berth-egress runs as; no other user but root gets them."),
	SETTING(CONFIG_INT, node_settings, warm_slots, "16",
		"How many network namespaces with a link are made ahead."),
	SETTING(CONFIG_DURATION, node_settings, disk_limit, "30s",
		"How long making a sandbox's disk may take; at most 80s, as the next two."),
	SETTING(CONFIG_DURATION, node_settings, engine_limit, "30s",
		"How long an engine may take to start a sandbox."),
	SETTING(CONFIG_DURATION, node_settings, hello_limit, "30s",
		"How long berth-init may take from there to its first word."),
	SETTING(CONFIG_STR, node_settings, log_level, "info",
		"How much is logged: error, warn or info, each with those before it."),
	SETTING(CONFIG_STR, node_settings, log_format, "json",
		"How a line of the log looks: json, or pretty for a terminal."),
	SETTING_END
};
/* clang-format on */

struct daemon {
	struct node node; /* the first: node_free() */
	struct egress_sockets egress_sockets;
	struct allocations all;
	struct fence fence;
	struct sync sync;
};

struct node *node_new(void)
{
	struct daemon *d = xcalloc(1, sizeof(*d));

	d->node.egress_sockets = &d->egress_sockets;
	d->node.all = &d->all;
	d->node.fence = &d->fence;
	d->node.sync = &d->sync;
	return &d->node;
}

void node_free(struct node *n)
{
	free(n);
}

static int check_settings(struct node *n, struct err *e)
{
	struct node_settings *s = &n->settings;

	if (!s->instance[0] || strspn(s->instance, "abcdefghijklmnopqrstuvwxyz0123456789") !=
				       strlen(s->instance))
		return err_set(e, ERR_INVALID, "instance must be of a-z and 0-9: %s", s->instance);
	if (s->first_id < 65536 ||
	    s->first_id > UINT32_MAX - (uint64_t)SLOT_COUNT * USERNS_RANGE)
		return err_set(e, ERR_INVALID, "first_id must be between 65536 and %llu",
			       (unsigned long long)(UINT32_MAX -
						    (uint64_t)SLOT_COUNT * USERNS_RANGE));
	if (s->warm_slots > SLOT_WARM_MAX)
		return err_set(e, ERR_INVALID, "warm_slots must be at most %d", SLOT_WARM_MAX);
	n->steps.ms[STEP_DISK] = s->disk_limit;
	n->steps.ms[STEP_ENGINE] = s->engine_limit;
	n->steps.ms[STEP_HELLO] = s->hello_limit;
	if (step_check(&n->steps, e) < 0)
		return -1;
	if (user_find(s->socket_user, "berthd", &n->peer_uid, e) < 0)
		return -1;
	return user_find(s->egress_user, "berth-egress", &n->egress_sockets->user, e);
}

/* One berth-node per run directory: a second one would fight over the same sandboxes. */
static int open_run_dir(struct node *n, struct err *e)
{
	n->pid = getpid();
	if (dir_open(AT_FDCWD, n->settings.run_dir, 0700, &n->run_fd, e) < 0)
		return -1;
	n->lock_fd = openat(n->run_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (n->lock_fd < 0)
		return err_sys(e, errno, "open %s/lock", n->settings.run_dir);
	if (flock(n->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		err_set(e, ERR_CONFLICT, "another berth-node uses %s", n->settings.run_dir);
		return err_fix(e, "Stop that one, or give this one a run_dir, a pool and an "
				  "instance of its own.");
	}
	if (dir_open(n->run_fd, "alloc", 0700, &n->alloc_fd, e) < 0)
		return -1;
	return dir_open(n->run_fd, "engine", 0700, &n->engine_fd, e);
}

static int enter_mount_namespace(struct err *e)
{
	/* What the host mounts later still reaches us; what we mount stays here. */
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(e, errno, "private mount namespace");
	return 0;
}

/*
 * A copy of init in memory, seen only here: a guest that reads its mounts learns no
 * path of the host, and a new program in its place does not change what runs.
 */
static int keep_init(struct node *n, struct err *e)
{
	struct node_settings *s = &n->settings;
	cleanup(buf_done) struct buf program = buf_make(INIT_MAX);
	cleanup(close_fd) int dir = -1;
	char path[sizeof(s->init)];

	if (file_read(AT_FDCWD, s->init, &program, e) < 0)
		return -1;
	if ((size_t)snprintf(path, sizeof(path), "%s/init", s->run_dir) >= sizeof(path) - 8)
		return err_set(e, ERR_INVALID, "path too long: %.60s...", s->run_dir);
	if (dir_open(n->run_fd, "init", 0755, &dir, e) < 0)
		return -1;
	close_fd(&dir);
	if (mount("berth-init", path, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		return err_sys(e, errno, "mount a tmpfs on %s", path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, errno, "open %s", path);
	if (file_replace_fast(dir, "init", program.data, program.len, e) < 0)
		return -1;
	if (fchmodat(dir, "init", 0755, 0) < 0)
		return err_sys(e, errno, "make %s/init executable", path);
	snprintf(s->init, sizeof(s->init), "%s/init", path);
	return 0;
}

static void on_end_signal(uv_signal_t *handle, int signum)
{
	struct node *n = handle->data;

	log_event(LOG_INFO, "berth-node ends; sandboxes live on", "signal",
		  signum == SIGTERM ? "TERM" : "INT", NULL);
	uv_stop(&n->loop);
}

static int watch_signals(struct node *n, struct err *e)
{
	int r;

	n->on_term.data = n->on_int.data = n;
	(void)uv_signal_init(&n->loop, &n->on_term);
	(void)uv_signal_init(&n->loop, &n->on_int);
	r = uv_signal_start(&n->on_term, on_end_signal, SIGTERM);
	if (r == 0)
		r = uv_signal_start(&n->on_int, on_end_signal, SIGINT);
	return r < 0 ? err_uv(e, r, "watch signals") : 0;
}

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void unwatch_router(struct node *n)
{
	if (n->router_end)
		uv_close((uv_handle_t *)take_ptr(n->router_end), on_poll_closed);
}

static int watch_router(struct node *n, int fd, uv_poll_cb then, struct err *e)
{
	uv_poll_t *poll = xcalloc(1, sizeof(*poll));
	int r = uv_poll_init(&n->loop, poll, fd);

	if (r < 0) {
		free(poll);
		return err_uv(e, r, "watch berth-router");
	}
	poll->data = n;
	n->router_end = poll;
	uv_poll_start(poll, UV_READABLE, then);
	return 0;
}

static void on_router_end(uv_poll_t *poll, int status, int events);
static void on_router_time(uv_timer_t *timer);

/* Nothing is lost while we live; but the next berth-node would not find the namespace. */
static void router_failed(struct node *n, const struct err *why)
{
	uint64_t wait = ROUTER_AGAIN_MS << n->router_tries;

	unwatch_router(n);
	if (n->router_tries < ROUTER_DOUBLINGS)
		n->router_tries++;
	log_event(LOG_ERROR,
		  "berth-router is not there, and is started again: until then sandboxes lose "
		  "the network when berth-node ends",
		  "why", why->msg, NULL);
	uv_timer_start(&n->router_timer, on_router_time, wait, 0);
}

static void on_router_again(uv_poll_t *poll, int status, int events)
{
	struct node *n = poll->data;
	struct err e;

	(void)status, (void)events;
	unwatch_router(n);
	if (router_hold_end(&n->router, n->run_fd, &e) < 0 ||
	    watch_router(n, n->router.pidfd, on_router_end, &e) < 0)
		return router_failed(n, &e);
	uv_timer_stop(&n->router_timer);
	n->router_tries = 0;
	log_event(LOG_WARN, "berth-router ended; another one took over", NULL);
}

static void start_router(struct node *n)
{
	struct err e;

	if (router_hold_begin(&n->router, n->run_fd, &e) < 0 ||
	    watch_router(n, n->router.starting, on_router_again, &e) < 0)
		return router_failed(n, &e);
	uv_timer_start(&n->router_timer, on_router_time, ROUTER_LATE_MS, 0);
}

/* One that hangs may still come up: the first that has the lock is it, all others end. */
static void on_router_time(uv_timer_t *timer)
{
	struct node *n = timer->data;
	struct err e;

	if (!n->router_end)
		return start_router(n);
	err_set(&e, ERR_TIMEOUT, "it did not come up within %d ms", ROUTER_LATE_MS);
	router_failed(n, &e);
}

static void on_router_end(uv_poll_t *poll, int status, int events)
{
	struct node *n = poll->data;

	(void)status, (void)events;
	unwatch_router(n);
	start_router(n);
}

static int open_network(struct node *n, struct err *e)
{
	uv_timer_init(&n->loop, &n->router_timer);
	n->router_timer.data = n;
	if (router_open(&n->router, n->run_fd, e) < 0 ||
	    watch_router(n, n->router.pidfd, on_router_end, e) < 0)
		return -1;
	n->slots.loop = &n->loop;
	n->slots.router = n->router.netns;
	n->slots.wanted = n->settings.warm_slots;
	return slots_open(&n->slots, n->run_fd, e);
}

int node_open(struct node *n, struct err *e)
{
	char mountpoint[sizeof(n->settings.run_dir) + 8];
	int r;

	n->lock_fd = n->run_fd = n->alloc_fd = n->engine_fd = n->listen_fd = n->engine.fd = -1;
	n->egress_sockets->listener = -1;
	kernel_log_init(&n->kernel_log);
	router_init(&n->router);
	n->fence->alarm_fd = n->fence->guard.fd = n->fence->guard.home = -1;
	n->filter = buf_make(SECCOMP_TEXT_MAX);
	r = uv_loop_init(&n->loop);
	if (r < 0)
		return err_uv(e, r, "loop");
	snprintf(mountpoint, sizeof(mountpoint), "%s/pool", n->settings.run_dir);
	if (check_settings(n, e) < 0 || seccomp_compile(&n->filter, e) < 0 ||
	    open_run_dir(n, e) < 0 || freeze_watchdog_open(&n->fence->guard, n->run_fd, e) < 0 ||
	    open_network(n, e) < 0 ||
	    enter_mount_namespace(e) < 0 || keep_init(n, e) < 0 ||
	    cgroup_open(&n->cgroups, n->settings.instance, e) < 0 ||
	    fence_open(n, e) < 0 ||
	    pool_open(&n->pool, n->settings.pool, n->settings.pool_size, mountpoint, e) < 0 ||
	    image_clean(n, e) < 0 || node_adopt(n, e) < 0 || watch_signals(n, e) < 0)
		return -1;
	crash_point("node.adopted");
	(void)devices_repair("/dev", n->settings.first_id, (uint64_t)SLOT_COUNT * USERNS_RANGE);
	sync_open(n);
	slots_warm_up(&n->slots);
	if (egress_sockets_open(n, e) < 0 || link_listen(n, e) < 0)
		return -1;
	crash_point("node.listening");
	return 0;
}

/* What the kernel says about one record we found. */
static void adopt_one(struct allocation *a)
{
	struct node_observation o;
	struct err e;

	allocation_observe(a->node, a->spec.sandbox, a->spec.generation, &o);
	a->phase = PHASE_ENDED;
	if (a->protocol && o.process == PRESENCE_PRESENT && process_find(a, &e) == 0 &&
	    process_watch(a, &e) == 0)
		a->phase = PHASE_RUNNING;
	if (a->phase == PHASE_RUNNING && o.link == PRESENCE_PRESENT &&
	    nft_allowlist_add(&a->node->router.rules, a->slot, &e) < 0)
		allocation_log(a, LOG_ERROR, "sandbox is cut off from the network", e.msg);
	allocation_log(a, LOG_INFO, "sandbox adopted", NULL);
}

int node_adopt(struct node *n, struct err *e)
{
	int fd = openat(n->alloc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct allocation *a;
	struct dirent *entry;
	struct err why;

	if (!dir)
		return err_sys(e, errno, "read alloc/");
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (allocation_load(n, entry->d_name, &a, &why) == 0)
			adopt_one(a);
		else
			log_event(LOG_ERROR, "allocation record cannot be read: left alone",
				  "allocation", entry->d_name, "why", why.msg, NULL);
	}
	return 0;
}

static void free_allocations(struct node *n)
{
	for (size_t i = 0; i < ALLOCATION_BUCKETS; i++)
		while (n->all->buckets[i]) {
			struct allocation *a = n->all->buckets[i];

			n->all->buckets[i] = a->next;
			process_unwatch(a);
			allocation_free(a);
		}
}

void node_close(struct node *n)
{
	bool idle = n->all->count == 0;

	image_jobs_end(n);
	link_close_all(n);
	verb_end_listings(n);
	egress_sockets_close(n);
	slots_close(&n->slots);
	fence_close(n);
	sync_close(n);
	free_allocations(n);
	if (n->on_term.data) {
		uv_close((uv_handle_t *)&n->on_term, NULL);
		uv_close((uv_handle_t *)&n->on_int, NULL);
	}
	unwatch_router(n);
	if (n->router_timer.data)
		uv_close((uv_handle_t *)&n->router_timer, NULL);
	uv_run(&n->loop, UV_RUN_NOWAIT);
	router_close(&n->router, n->run_fd, idle);
	pool_close(&n->pool);
	cgroup_close(&n->cgroups);
	kernel_log_close(&n->kernel_log);
	close_fd(&n->listen_fd);
	close_fd(&n->engine_fd);
	sealed_exe_done(&n->engine);
	buf_done(&n->filter);
	close_fd(&n->alloc_fd);
	close_fd(&n->run_fd);
	close_fd(&n->lock_fd);
}

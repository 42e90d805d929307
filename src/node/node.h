/*
 * berth-node: the privileged side of a host. One thread, one loop, no HTTP, no
 * SQL, no JSON from strangers: it obeys framed verbs from one local user,
 * reports what the kernel says, and can be killed at any instruction.
 */
#pragma once

#include <uv.h>

#include "lib/config.h"
#include "lib/log.h"
#include "node/cgroup.h"
#include "node/kernel-log.h"
#include "node/pool.h"
#include "node/router.h"
#include "node/sealed-exe.h"
#include "node/slot.h"
#include "node/step.h"

struct node_settings {
	char instance[20];
	char socket[104];
	char socket_user[64];
	char run_dir[1024];
	char pool[1024];
	uint64_t pool_size;
	char init[1024];
	char image_helper[1024];
	char insecure_registries[1024];
	uint64_t image_bytes;
	uint64_t first_id;
	char runsc_platform[16];
	char egress_socket[104];
	char egress_user[64];
	uint64_t warm_slots;
	uint64_t disk_limit, engine_limit, hello_limit; /* milliseconds: step.h */
	char log_level[LOG_WORD_SIZE], log_format[LOG_WORD_SIZE];
};

struct allocations;
struct fence;
struct egress_sockets;
struct image_job;
struct link;
struct sync;

struct node {
	uv_loop_t loop;
	struct node_settings settings;
	struct step_limits steps;
	pid_t pid;     /* our own */
	int lock_fd;   /* held as long as we live, or a child that works for us */
	int run_fd;    /* RUN */
	int alloc_fd;  /* RUN/alloc */
	int engine_fd; /* RUN/engine, where each engine keeps its own records */
	struct pool pool;
	struct cgroup_host cgroups;
	struct kernel_log kernel_log;
	struct router router;
	uv_poll_t *router_end;   /* berth-router's, or the start of one; NULL: it is not watched */
	uv_timer_t router_timer; /* until a start is late, or the next is tried */
	unsigned router_tries;   /* starts that failed, one after the other */
	struct slots slots;
	struct egress_sockets *egress_sockets;
	struct allocations *all;
	struct fence *fence;
	struct sync *sync;
	struct buf filter;        /* of system calls, as the bundle takes it */
	struct sealed_exe engine; /* of the runtime that seals itself */
	unsigned image_tidies;    /* that failed, one after the other */
	struct image_job *image_jobs;

	uid_t peer_uid; /* who may talk to us, besides root */
	int listen_fd;
	uv_poll_t listener;
	uv_signal_t on_term, on_int;
	struct link *links;
	struct call *followers;   /* of what ends by itself */
	struct listing *listings; /* inventories on their way */
};

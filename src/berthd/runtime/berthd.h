/*
 * berthd: everything that parses what strangers send. It runs as a user of its
 * own without capabilities and reaches the privileged side only through
 * berth-node's socket.
 */
#pragma once

#include "berthd/runtime/bus.h"
#include "berthd/runtime/reactor.h"
#include "berthd/runtime/worker.h"
#include "lib/config.h"
#include "lib/log.h"
#include "store/host.h"

#define BERTHD_LOOPS_MAX         16
#define BERTHD_ORIGINS_SIZE      2048
#define BERTHD_TIMER_DIVISOR_MAX 10000

struct berthd_settings {
	char listen[128];
	char database[1024];
	char node_socket[104];
	char egress_socket[104];
	char secret_key_file[1024];
	char state_dir[1024];
	char cell[SANDBOX_CELL_MAX + 1];
	char host[SANDBOX_HOST_SIZE];
	char peer_listen[128];
	char peer_address[HOST_ADDRESS_SIZE];
	char peer_proxy[128];
	uint64_t loops;
	uint64_t store_workers;
	char default_runtime[SANDBOX_RUNTIME_SIZE];
	uint64_t timer_divisor;
	uint64_t max_age_s;
	uint64_t cap_personal, cap_organisation;
	uint64_t sandboxes_max, overcommit_memory, overcommit_disk, overcommit_cpu,
		overcommit_pids;
	uint64_t disk_keep_mb, memory_keep_mb;
	uint64_t journal_exec_bytes;
	uint64_t journal_host_bytes;
	char lease[8];
	char cors_origins[BERTHD_ORIGINS_SIZE];
	/* Of each table, in ms; 0: for ever. See store/retention.h. */
	uint64_t retention_tombstones, retention_idempotency, retention_events, retention_usage;
	uint64_t retention_sessions, retention_caps, retention_network;
	uint64_t retention_alerts, retention_security, retention_incidents;
	char log_level[LOG_WORD_SIZE], log_format[LOG_WORD_SIZE];
};
/*
 * What every room may reach: the settings, the loops and threads, and each room's own state, which
 * only that room and those above it can look into. main/daemon.c alone knows what they all are.
 */
struct berthd {
	struct berthd_settings settings;
	struct workers workers;
	const struct reactor_hooks *hooks;
	struct reactor reactors[BERTHD_LOOPS_MAX];
	size_t reactor_count;
	uint64_t began_mono_ms; /* before it served anything */
	uv_signal_t on_term, on_int;
	struct bus bus;

	struct journals *journals; /* journal */
	struct journal_expire *expire;
	struct peers *peers;             /* cluster */
	struct lease_agent *lease_agent; /* NULL: leases are off */
	struct vault *vault;             /* netpolicy */
	struct policy_sync *egress;
	struct sandbox_cache *sandboxes; /* control */
	struct capacity *capacity;
	struct pool_level *pool_level;
	struct health *health;
	struct tick *tick;
	struct inflight *inflight, *inflight_keys;
	struct reconcile *reconcile;
	struct sweep_watch *sweep_watch;
	struct takeover *takeover; /* NULL: leases are off */
	struct last_used *last_used;
	struct usage_sampler *sampler;
	struct retention_keeper *retention;
	struct running_set *running;   /* exec */
	struct name_locks *name_locks; /* agent */
	struct wrapper_alarm *wrapper_alarm;
	struct key_cache *keys; /* front */
	struct name_cache *names;
	struct incidents *incidents;
	struct key_watch *key_watch;
	_Atomic uint64_t disk_freed_ms;  /* when a sandbox was last seen gone; 0: never */
	_Atomic uint64_t disk_synced_ms; /* see pool_level_synced_at() */
	/* Bytes of output kept for JSON answers: all, and of each share of owners. */
	_Atomic size_t kept, kept_shares[WORKER_SHARES];
	_Atomic int image_works;    /* pulls and imports under way */
	_Atomic bool image_tidying; /* files without a name are being removed: none may begin */
};

/*
 * berthd: everything that parses what strangers send. It runs as a user of its
 * own without capabilities and reaches the privileged side only through
 * berth-node's socket.
 */
#pragma once

#include "berthd/agent/name-lock.h"
#include "berthd/cluster/host-lease.h"
#include "berthd/cluster/peers.h"
#include "berthd/control/inflight.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/control/usage-sampler.h"
#include "berthd/exec/running-set.h"
#include "berthd/front/cors.h"
#include "berthd/front/key-cache.h"
#include "berthd/front/name-cache.h"
#include "berthd/journal/journal.h"
#include "berthd/netpolicy/vault.h"
#include "berthd/runtime/reactor.h"
#include "berthd/runtime/worker.h"
#include "core/placement.h"
#include "lib/config.h"
#include "lib/log.h"
#include "store/host.h"

#define BERTHD_LOOPS_MAX         16
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
	uint64_t sandboxes_max, overcommit_memory, overcommit_disk, overcommit_cpu;
	uint64_t disk_keep_mb, memory_keep_mb;
	uint64_t journal_exec_bytes;
	uint64_t journal_host_bytes;
	char lease[8];
	char cors_origins[CORS_ORIGINS_SIZE];
	/* Of each table, in ms; 0: for ever. See store/retention.h. */
	uint64_t retention_tombstones, retention_idempotency, retention_events, retention_usage;
	uint64_t retention_sessions, retention_caps, retention_network;
	char log_level[LOG_WORD_SIZE], log_format[LOG_WORD_SIZE];
};
extern const struct setting berthd_settings_table[];

struct berthd {
	struct berthd_settings settings;
	struct workers workers;
	struct key_cache keys;
	struct places places;
	struct addresses addresses;
	struct {
		pthread_mutex_t lock;
		struct placement_host host;
		struct host_capacity capacity; /* all zero: never measured */
		uint64_t measured_ms;          /* 0: never */
		bool asking;
		uv_timer_t timer;
	} room; /* what this host has: berthd/control/capacity.h */
	struct peers peers;
	struct changing changing, keys_at_work;
	struct busy busy;
	struct turns turns; /* of wrappers */
	struct reactor reactors[BERTHD_LOOPS_MAX];
	size_t reactor_count;
	uv_signal_t on_term, on_int;
	struct reconcile *reconcile;
	struct uses *uses;
	struct meter meter;
	struct vault vault;
	struct egress_keeper *egress;
	struct wrapper_alarm *wrapper_alarm;
	_Atomic size_t exec_held; /* bytes of output kept for JSON answers; see exec/json.c */
	struct journals journals;
	struct trim *trim;
	struct retention_keeper *retention;
	struct host_keeper *keeper; /* NULL: leases are off */
	_Atomic int image_works;    /* pulls and imports under way */
	_Atomic bool image_tidying; /* files without a name are being removed: none may begin */
};

must_check int berthd_open(struct berthd *b, struct err *e);
must_check int berthd_start(struct berthd *b, struct err *e); /* all loops but the first */
void berthd_run(struct berthd *b);                            /* that one, until SIGTERM */
void berthd_close(struct berthd *b);

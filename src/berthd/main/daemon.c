#include "berthd/main/daemon.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/agent/lease-deadline.h"
#include "berthd/agent/name-lock.h"
#include "berthd/api/v1/events.h"
#include "berthd/cluster/host-lease.h"
#include "berthd/cluster/peers.h"
#include "berthd/control/capacity.h"
#include "berthd/control/health.h"
#include "berthd/control/inflight.h"
#include "berthd/control/last-used.h"
#include "berthd/control/pool-level.h"
#include "berthd/control/reconcile.h"
#include "berthd/control/retention.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/control/sweep-watch.h"
#include "berthd/control/takeover.h"
#include "berthd/control/tick.h"
#include "berthd/control/usage-sampler.h"
#include "berthd/exec/recover.h"
#include "berthd/exec/running-set.h"
#include "berthd/front/cors.h"
#include "berthd/front/incidents.h"
#include "berthd/front/key-cache.h"
#include "berthd/front/key-watch.h"
#include "berthd/front/name-cache.h"
#include "berthd/front/pipeline.h"
#include "berthd/journal/journal-expire.h"
#include "berthd/journal/tail.h"
#include "berthd/netpolicy/policy-sync.h"
#include "berthd/netpolicy/vault.h"
#include "lib/crash.h"
#include "lib/id.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/time.h"
#include "store/cell.h"
#include "store/host.h"

/* clang-format off */
const struct setting berthd_settings_table[] = {
	SETTING(CONFIG_STR, berthd_settings, listen, "127.0.0.1:7070",
		"Where the API listens: a numeric address and a port."),
	SETTING(CONFIG_STR, berthd_settings, database, NULL,
		"How PostgreSQL is reached, in libpq's words: host=/run/berth/pg dbname=berth."),
	SETTING(CONFIG_STR, berthd_settings, node_socket, "/run/berth/node.sock",
		"The Unix socket of berth-node."),
	SETTING(CONFIG_STR, berthd_settings, egress_socket, "/run/berth-egress/policy.sock",
		"The Unix socket of berth-egress."),
	SETTING(CONFIG_STR, berthd_settings, secret_key_file, "",
		"The key that secrets are sealed with, the same on every host of a cell; empty: "
		"secret.key in state_dir. One that is not there is made."),
	SETTING(CONFIG_STR, berthd_settings, state_dir, "/var/lib/berth/berthd",
		"Where uploads wait until they are unpacked."),
	SETTING(CONFIG_STR, berthd_settings, cell, "c1",
		"The cell's short name, part of every id: 1 to 8 of a-z and 0-9."),
	SETTING(CONFIG_STR, berthd_settings, host, "h1",
		"This host's name in its cell."),
	SETTING(CONFIG_STR, berthd_settings, peer_listen, "",
		"Where other hosts of the cell hand requests on; empty: this is the only host."),
	SETTING(CONFIG_STR, berthd_settings, peer_address, "",
		"How they reach that: a numeric address and a port. Empty: peer_listen itself."),
	SETTING(CONFIG_STR, berthd_settings, peer_proxy, "",
		"Where requests to other hosts go through TLS: the local HAProxy. Empty: direct."),
	SETTING(CONFIG_INT, berthd_settings, loops, "2",
		"Loop threads; each serves connections on the same address."),
	SETTING(CONFIG_INT, berthd_settings, store_workers, "4",
		"Threads that talk to PostgreSQL, each over a connection of its own."),
	SETTING(CONFIG_STR, berthd_settings, default_runtime, "crun",
		"The engine of sandboxes that name none: crun or runsc."),
	SETTING(CONFIG_INT, berthd_settings, timer_divisor, "1",
		"For tests: all times that decide are divided by this."),
	SETTING(CONFIG_INT, berthd_settings, max_age_s, "0",
		"The lifetime of new sandboxes that ask for none, unless kept alive; 0: no end."),
	SETTING(CONFIG_INT, berthd_settings, cap_personal, "20",
		"How many sandboxes a user (an identity without org) may have; 0: any number."),
	SETTING(CONFIG_INT, berthd_settings, cap_organisation, "50",
		"How many sandboxes one org may have; 0: any number."),
	SETTING(CONFIG_INT, berthd_settings, sandboxes_max, "10000",
		"How many sandboxes this host takes."),
	SETTING(CONFIG_INT, berthd_settings, overcommit_memory, "200",
		"How often the host's memory may be promised; 0: it is not counted."),
	SETTING(CONFIG_INT, berthd_settings, overcommit_disk, "0",
		"How often its disk may be promised; 0: only what is really free counts."),
	SETTING(CONFIG_INT, berthd_settings, overcommit_cpu, "0",
		"How often its CPUs may be promised; 0: they are not counted."),
	SETTING(CONFIG_INT, berthd_settings, overcommit_pids, "200",
		"How often half of the host's process ids may be promised; 0: they are not "
		"counted."),
	SETTING(CONFIG_INT, berthd_settings, disk_keep_mb, "0",
		"With less disk free, no sandbox is made; 0: 2048, or a tenth if that is less."),
	SETTING(CONFIG_INT, berthd_settings, memory_keep_mb, "0",
		"With less memory free, no sandbox is made; 0: 512, or a tenth if that is less."),
	SETTING(CONFIG_SIZE, berthd_settings, journal_exec_bytes, "256m",
		"Of one command's output, with 24 bytes for each piece, this much is kept."),
	SETTING(CONFIG_SIZE, berthd_settings, journal_host_bytes, "16g",
		"Of all commands' output; past it the owner that holds most loses its oldest."),
	SETTING(CONFIG_STR, berthd_settings, lease, "off",
		"on: the host keeps a lease and freezes its sandboxes when it loses it. Every host "
		"of a cell of several needs it; one alone does not."),
	SETTING(CONFIG_STR, berthd_settings, cors_origins, "",
		"Origins whose web pages may call the API from a browser, separated by spaces: "
		"https://app.example.org. Empty: none."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_tombstones, "90d",
		"How long the receipt of a deletion is kept; 0s: for ever. One of a host that was "
		"lost or removed always is."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_idempotency, "48h",
		"How long a request with an Idempotency-Key is known again; 0s: for ever."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_events, "90d",
		"How long the events of a sandbox are kept; 0s: for ever. Those of one that is not "
		"seen gone always are."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_usage, "90d",
		"How long is kept what sandboxes used that are gone; 0s: for ever."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_sessions, "90d",
		"How long the policy that was chosen for an agent session without a sandbox holds; "
		"0s: for ever."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_caps, "30d",
		"How long a user or an org without sandboxes is known by its cap; 0s: for ever."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_network, "90d",
		"How long is kept what sandboxes sent that are gone, and not before their usage "
		"is removed; 0s: for ever."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_alerts, "90d",
		"How long an alert is kept that has ended; 0s: for ever."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_security, "90d",
		"How long is kept what the network policy refused sandboxes that are gone; "
		"0s: for ever. Of each the last 1000 are."),
	SETTING(CONFIG_DURATION, berthd_settings, retention_incidents, "90d",
		"How long refused requests are kept, of which the last 10000 are; 0s: for ever."),
	SETTING(CONFIG_STR, berthd_settings, log_level, "info",
		"How much is logged: error, warn or info, each with those before it."),
	SETTING(CONFIG_STR, berthd_settings, log_format, "json",
		"How a line of the log looks: json, or pretty for a terminal."),
	SETTING_END
};
/* clang-format on */

struct daemon {
	struct berthd berthd; /* the first: berthd_free() */
	struct journals journals;
	struct peers peers;
	struct vault vault;
	struct sandbox_cache sandboxes;
	struct capacity capacity;
	struct pool_level pool_level;
	struct health health;
	struct sweep_watch sweep_watch;
	struct inflight inflight, inflight_keys;
	struct usage_sampler sampler;
	struct running_set running;
	struct name_locks name_locks;
	struct key_cache keys;
	struct name_cache names;
};

static const struct reactor_hooks hooks = {
	.request = pipeline_begin,
	.open = events_begin,
	.wake = tails_run,
	.stop = events_end,
	.close = events_close,
	.event = events_tell,
};

struct berthd *berthd_new(void)
{
	struct daemon *d = xcalloc(1, sizeof(*d));
	struct berthd *b = &d->berthd;

	b->hooks = &hooks;
	b->journals = &d->journals;
	b->peers = &d->peers;
	b->vault = &d->vault;
	b->sandboxes = &d->sandboxes;
	b->capacity = &d->capacity;
	b->pool_level = &d->pool_level;
	b->health = &d->health;
	b->sweep_watch = &d->sweep_watch;
	b->inflight = &d->inflight;
	b->inflight_keys = &d->inflight_keys;
	b->sampler = &d->sampler;
	b->running = &d->running;
	b->name_locks = &d->name_locks;
	b->keys = &d->keys;
	b->names = &d->names;
	return b;
}

void berthd_free(struct berthd *b)
{
	free(b);
}

static bool leased(const struct berthd *b)
{
	return strcmp(b->settings.lease, "on") == 0;
}

/* It stands in records, logs and passes. */
static int check_host(const char *host, struct err *e)
{
	static const char may[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	if (!host[0] || strspn(host, may) != strlen(host))
		return err_set(e, ERR_INVALID, "host must be of letters, digits and .-_: %s", host);
	return 0;
}

static int check_settings(struct berthd_settings *s, struct err *e)
{
	if (check_host(s->host, e) < 0)
		return -1;
	if (sandbox_cell_check(s->cell, e) < 0 || sandbox_runtime_check(s->default_runtime, e) < 0)
		return -1;
	if (s->loops < 1 || s->loops > BERTHD_LOOPS_MAX)
		return err_set(e, ERR_INVALID, "loops must be from 1 to %d", BERTHD_LOOPS_MAX);
	if (s->store_workers < 1 || s->store_workers > WORKERS_MAX)
		return err_set(e, ERR_INVALID, "store_workers must be from 1 to %d", WORKERS_MAX);
	if (s->timer_divisor < 1 || s->timer_divisor > BERTHD_TIMER_DIVISOR_MAX)
		return err_set(e, ERR_INVALID, "timer_divisor must be from 1 to %d",
			       BERTHD_TIMER_DIVISOR_MAX);
	if (strcmp(s->lease, "on") != 0 && strcmp(s->lease, "off") != 0)
		return err_set(e, ERR_INVALID, "lease must be on or off, not %s", s->lease);
	return cors_check(s->cors_origins, e);
}

/* The secret is made once for the whole cell; it only ever leaves the database to its hosts. */
static int join_cell(struct berthd *b, struct store *s, struct err *e)
{
	struct berthd_settings *set = &b->settings;
	char fresh[CELL_SECRET_SIZE];
	uint64_t now_ms;

	if (!set->peer_listen[0])
		return 0;
	if (!set->peer_address[0])
		memcpy(set->peer_address, set->peer_listen, sizeof(set->peer_address));
	id_random(fresh, CELL_SECRET_SIZE - 1);
	if (store_cell_secret(s, fresh, b->peers->secret, e) < 0 ||
	    store_cell_now(s, &now_ms, e) < 0)
		return -1;
	peers_set_now_ms(b->peers, now_ms); /* passes are good from the first request on */
	crash_point("cell.secret-made");
	return store_host_address(s, set->host, set->peer_address, e);
}

static int load_vault(struct berthd *b, struct err *e)
{
	char path[sizeof(b->settings.state_dir) + 16];

	snprintf(path, sizeof(path), "%s/secret.key", b->settings.state_dir);
	return vault_load(b->vault,
			  b->settings.secret_key_file[0] ? b->settings.secret_key_file : path, e);
}

static int prepare_database(struct berthd *b, struct err *e)
{
	cleanup(store_closep) struct store *s = NULL;

	if (store_open(b->settings.database, &s, e) < 0 || store_migrate(s, e) < 0)
		return -1;
	if (store_host_put(s, b->settings.host, BERTH_VERSION, leased(b), e) < 0)
		return -1;
	return join_cell(b, s, e);
}

static void on_end_signal(uv_signal_t *handle, int signum)
{
	struct berthd *b = handle->data;

	log_event(LOG_INFO, "berthd ends; sandboxes live on", "signal",
		  signum == SIGTERM ? "TERM" : "INT", NULL);
	for (size_t i = 0; i < b->reactor_count; i++)
		reactor_stop(&b->reactors[i]);
}

static int watch_signals(struct berthd *b, struct err *e)
{
	uv_loop_t *loop = &b->reactors[0].loop;
	int r;

	(void)uv_signal_init(loop, &b->on_term);
	(void)uv_signal_init(loop, &b->on_int);
	b->on_term.data = b->on_int.data = b;
	r = uv_signal_start(&b->on_term, on_end_signal, SIGTERM);
	if (r == 0)
		r = uv_signal_start(&b->on_int, on_end_signal, SIGINT);
	return r < 0 ? err_uv(e, r, "watch signals") : 0;
}

static bool owner_of(struct berthd *b, const char *sandbox, char owner[SANDBOX_OWNER_SIZE])
{
	struct cached_sandbox place;

	if (!sandbox_cache_get(b->sandboxes, sandbox, &place))
		return false;
	memcpy(owner, place.owner, sizeof(place.owner));
	return true;
}

static void on_lease_begun(struct berthd *b)
{
	reconcile_look(b->reconcile);
}

static void on_lease_held(struct berthd *b, uint64_t epoch)
{
	takeover_look(b->takeover, epoch);
}

static const struct host_lease_events lease_events = {
	.begun = on_lease_begun,
	.held = on_lease_held,
};

/* Before anything of the host is touched: one berthd at a time. */
static int check_alone(const struct berthd_settings *s, struct err *e)
{
	if (http_server_alone(s->listen, e) < 0)
		return -1;
	return s->peer_listen[0] ? http_server_alone(s->peer_listen, e) : 0;
}

int berthd_open(struct berthd *b, struct err *e)
{
	if (check_settings(&b->settings, e) < 0 || check_alone(&b->settings, e) < 0 ||
	    prepare_database(b, e) < 0 || load_vault(b, e) < 0)
		return -1;
	crash_point("api.database-ready");
	b->began_mono_ms = time_mono_ms();
	bus_open(&b->bus);
	key_cache_init(b->keys);
	sandbox_cache_init(b->sandboxes);
	usage_sampler_init(b->sampler);
	running_set_init(b->running);
	name_locks_init(b->name_locks);
	peers_init(b->peers);
	inflight_init(b->inflight);
	inflight_init(b->inflight_keys);
	name_cache_init(b->names);
	pthread_mutex_init(&b->capacity->lock, NULL);
	if (journals_open(b->journals, b->settings.state_dir, b->settings.journal_exec_bytes, e) <
	    0)
		return -1;
	if (workers_open(&b->workers, b->settings.database, b->settings.store_workers, e) < 0)
		return -1;
	for (size_t i = 0; i < b->settings.loops; i++) {
		if (reactor_open(&b->reactors[i], b, e) < 0)
			return -1;
		b->reactor_count++;
		if (reactor_serve(&b->reactors[i], e) < 0)
			return -1;
	}
	b->egress = policy_sync_begin(&b->reactors[0], owner_of);
	execs_recover(b);
	b->expire = journal_expire_begin(&b->reactors[0]);
	b->retention = retention_begin(&b->reactors[0]);
	b->incidents = incidents_begin(&b->reactors[0]);
	b->key_watch = key_watch_begin(&b->reactors[0]);
	if (leased(b)) {
		b->takeover = takeover_begin(&b->reactors[0], (unsigned)b->settings.timer_divisor);
		if (lease_agent_begin(&b->reactors[0], &lease_events, &b->lease_agent, e) < 0)
			return -1;
	}
	b->reconcile = reconcile_new(&b->reactors[0]);
	reconcile_begin(b->reconcile);
	b->last_used = last_used_begin(&b->reactors[0]);
	b->wrapper_alarm = wrapper_alarm_begin(&b->reactors[0]);
	health_init(b);
	b->tick = tick_begin(&b->reactors[0]);
	sweep_watch_begin(&b->reactors[0]);
	usage_sampler_begin(b->sampler, &b->reactors[0]);
	peers_begin(b->peers, &b->reactors[0]);
	crash_point("api.serving");
	return watch_signals(b, e);
}

static void *run_reactor(void *arg)
{
	reactor_run(arg);
	return NULL;
}

int berthd_start(struct berthd *b, struct err *e)
{
	sigset_t all, before;
	int failed = 0;

	sigfillset(&all); /* signals are the first loop's business */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	for (size_t i = 1; i < b->reactor_count && !failed; i++) {
		struct reactor *r = &b->reactors[i];

		failed = pthread_create(&r->thread, NULL, run_reactor, r);
		r->threaded = !failed;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	/* Its listener is open: what came to it would wait for ever. */
	return failed ? err_sys(e, failed, "start %zu loop threads", b->reactor_count) : 0;
}

void berthd_run(struct berthd *b)
{
	reactor_run(&b->reactors[0]);
	for (size_t i = 1; i < b->reactor_count; i++)
		if (b->reactors[i].threaded)
			pthread_join(b->reactors[i].thread, NULL);
}

void berthd_close(struct berthd *b)
{
	workers_close(&b->workers);
	uv_close((uv_handle_t *)&b->on_term, NULL);
	uv_close((uv_handle_t *)&b->on_int, NULL);
	policy_sync_end(b->egress);
	reconcile_end(b->reconcile);
	journal_expire_end(b->expire);
	retention_end(b->retention);
	incidents_end(take_ptr(b->incidents));
	key_watch_end(b->key_watch);
	last_used_end(b->last_used);
	usage_sampler_end(b->sampler);
	wrapper_alarm_end(b->wrapper_alarm);
	tick_end(b->tick);
	sweep_watch_end(&b->reactors[0]);
	lease_agent_end(b->lease_agent);
	peers_end(b->peers);
	for (size_t i = 0; i < b->reactor_count; i++)
		reactor_close(&b->reactors[i]);
	takeover_end(b->takeover);
	journals_close(b->journals);
	sandbox_cache_done(b->sandboxes);
	usage_sampler_done(b->sampler);
	name_cache_done(b->names);
	running_set_done(b->running);
	name_locks_done(b->name_locks);
	peers_done(b->peers);
	key_cache_done(b->keys);
	bus_close(&b->bus);
}

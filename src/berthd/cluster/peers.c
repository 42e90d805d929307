#include "berthd/cluster/peers.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/time.h"

/* Not our own wall clock: one that is wrong would cut this host off from its cell. */
uint64_t peers_now_ms(struct peers *p)
{
	return atomic_load(&p->ahead_ms) + time_boot_ms();
}

void peers_set_now_ms(struct peers *p, uint64_t now_ms)
{
	atomic_store(&p->ahead_ms, now_ms - time_boot_ms()); /* may wrap, and back again */
}

void peers_init(struct peers *p)
{
	pthread_mutex_init(&p->lock, NULL);
	peer_token_seen_init(&p->seen, peers_now_ms(p));
}

void peers_done(struct peers *p)
{
	free(p->list);
	free(p->found);
	peer_token_seen_done(&p->seen);
}

static void add(struct peers *p, const struct host *h, struct peer *list, size_t *count)
{
	struct peer *one;

	if (*count == PEERS_MAX)
		return;
	one = &list[(*count)++];
	memcpy(one->id, h->id, sizeof(one->id));
	memcpy(one->address, h->address, sizeof(one->address));
	one->state = host_state(h, (unsigned)p->reactor->berthd->settings.timer_divisor);
}

static void take_row(const struct host *h, void *arg)
{
	struct peers *p = arg;

	peers_set_now_ms(p, h->read_ms);
	add(p, h, p->found, &p->found_count);
}

static int read_hosts(struct job *job, struct store *s, struct err *e)
{
	struct peers *p = container_of(job, struct peers, job);

	p->found_count = 0;
	return store_host_list(s, take_row, p, e);
}

/* What was read stays until something newer was: an old address is better than none. */
static void on_hosts(struct job *job)
{
	struct peers *p = container_of(job, struct peers, job);
	struct peer *old;

	p->asking = false;
	if (job->failed)
		return;
	pthread_mutex_lock(&p->lock);
	old = p->list;
	p->list = p->found;
	p->count = p->found_count;
	p->found = old;
	pthread_mutex_unlock(&p->lock);
}

static void on_timer(uv_timer_t *timer)
{
	struct peers *p = timer->data;

	if (p->asking)
		return;
	p->asking = true;
	job_submit(p->reactor, NULL, &p->job, read_hosts, on_hosts);
}

void peers_begin(struct peers *p, struct reactor *r)
{
	uint64_t every = PEERS_EVERY_MS / r->berthd->settings.timer_divisor;

	if (!p->secret[0])
		return;
	if (every < PEERS_LEAST_MS)
		every = PEERS_LEAST_MS;
	p->reactor = r;
	p->list = xcalloc(PEERS_MAX, sizeof(*p->list));
	p->found = xcalloc(PEERS_MAX, sizeof(*p->found));
	uv_timer_init(&r->loop, &p->timer);
	p->timer.data = p;
	p->timing = true;
	uv_timer_start(&p->timer, on_timer, 0, every);
}

void peers_end(struct peers *p)
{
	if (p->timing)
		uv_close((uv_handle_t *)&p->timer, NULL);
}

static bool find(struct peers *p, const char *id, struct peer *ret)
{
	bool found = false;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->count && !found; i++) {
		found = strcmp(p->list[i].id, id) == 0;
		if (found)
			*ret = p->list[i];
	}
	pthread_mutex_unlock(&p->lock);
	return found;
}

void peers_learn(struct peers *p, struct store *s, const char *id)
{
	struct peer known;
	struct err ignored; /* then it stays unknown, and that is told */
	struct host h;

	if (find(p, id, &known) || store_host_get(s, id, &h, &ignored) < 0)
		return;
	pthread_mutex_lock(&p->lock);
	add(p, &h, p->list, &p->count); /* twice, if two workers are as fast: no harm */
	pthread_mutex_unlock(&p->lock);
}

bool peers_lost(struct peers *p, const char *id)
{
	struct peer found;

	return find(p, id, &found) && (found.state == HOST_LOST || found.state == HOST_GONE);
}

bool peers_frozen(struct peers *p, const char *id)
{
	struct peer found;

	return peers_lost(p, id) || (find(p, id, &found) && found.state == HOST_FROZEN);
}

int peers_get(struct peers *p, const char *id, struct peer *ret, struct err *e)
{
	if (!find(p, id, ret))
		return err_set(e, ERR_BUSY, "host %.60s is not known here", id);
	if (ret->state == HOST_LOST || ret->state == HOST_GONE) {
		err_set(e, ERR_BUSY, "host %s is %s", id, host_lease_state_name(ret->state));
		return err_fix(e, "What it ran is begun anew on another host: ask again in a "
				  "moment.");
	}
	if (!ret->address[0]) {
		err_set(e, ERR_BUSY, "host %s takes nothing from other hosts", id);
		return err_fix(e, "Set peer_listen and peer_address in its berthd.conf.");
	}
	return 0;
}

#include "berthd/front/place-create.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "berthd/control/capacity.h"
#include "berthd/front/forward.h"
#include "berthd/front/idempotency.h"
#include "berthd/runtime/berthd.h"
#include "core/placement.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "store/sandbox.h"

#define DRAWN     8 /* hosts looked at; if none of them takes it, more are */
#define DRAWN_MAX 100

struct placing {
	struct job job;
	struct request *rq;
	void (*here)(struct request *rq);
	struct placing_ask ask;
	struct idempotency_use use; /* an empty key: it came without */
	struct resources need;
	char tried[PLACING_TRIES][SANDBOX_HOST_SIZE];
	size_t tries;
	struct err why; /* what the last of them said */
	bool nowhere;   /* no host was asked: none takes it, and that is why */

	/* One draw. */
	struct placement_host rooms[DRAWN_MAX];
	char ids[DRAWN_MAX][SANDBOX_HOST_SIZE];
	size_t count, seen;    /* that could take it; in all */
	size_t engineless;     /* of those seen */
	struct limits largest; /* of those seen */
	char chosen[SANDBOX_HOST_SIZE];
};

/* It could never take it, however empty it is. */
static bool is_too_small(struct placing *p, const struct host *h)
{
	struct limits has = host_most(&h->capacity);
	struct err ignored;

	for (int i = 0; i < LIMIT_COUNT; i++)
		if (has.of[i] > p->largest.of[i])
			p->largest.of[i] = has.of[i];
	return limits_fit(&p->ask.limits, &has, &ignored) < 0;
}

static void take_row(const struct host *h, void *arg)
{
	struct placing *p = arg;
	struct host_share share = capacity_share(p->rq->reactor->berthd);

	p->seen++;
	for (size_t i = 0; i < p->tries; i++)
		if (strcmp(p->tried[i], h->id) == 0)
			return;
	if (p->ask.runtime[0] && !host_has_engine(&h->capacity, p->ask.runtime)) {
		p->engineless++;
		return;
	}
	if (is_too_small(p, h))
		return;
	p->rooms[p->count] = host_room(h, &share);
	memcpy(p->ids[p->count++], h->id, SANDBOX_HOST_SIZE);
}

/* Because there is no such image, or because of the hosts? */
static int nowhere(const struct placing *p, struct store *s, struct err *e)
{
	struct image image;
	struct host h;

	if (store_image_get(s, p->ask.image, &image, e) < 0 ||
	    (p->ask.host[0] && store_host_get(s, p->ask.host, &h, e) < 0))
		return -1;
	if (p->ask.host[0] && h.draining) {
		err_set(e, ERR_BUSY, "host %s is draining: it takes no new sandboxes", p->ask.host);
		err_reason(e, REASON_HOST_DRAINING, 0);
		return err_fix(e, "Name another host, or none.");
	}
	if (p->ask.host[0])
		err_set(e, ERR_BUSY, "host %s takes nothing new, or has not the image %s",
			p->ask.host, p->ask.image);
	else
		err_set(e, ERR_BUSY, "no host that takes new sandboxes has the image %s",
			p->ask.image);
	return err_fix(e, "'berth host ls' shows the hosts; an image is imported on each.");
}

static int no_engine(const struct placing *p, struct err *e)
{
	const char *runtime = p->ask.runtime;

	if (p->ask.host[0])
		err_set(e, ERR_UNSUPPORTED, "host %s has no %s, the engine of this runtime",
			p->ask.host, runtime);
	else
		err_set(e, ERR_UNSUPPORTED,
			"no host that takes new sandboxes has %s, the engine of this runtime",
			runtime);
	err_reason(e, REASON_ENGINE_MISSING, 0);
	return err_fix(e, "Install %s (%s), or ask for another runtime.", runtime,
		       strcmp(runtime, "crun") == 0 ? "apt install crun" : "https://gvisor.dev");
}

static int draw(struct placing *p, struct store *s, uint32_t how_many, struct err *e)
{
	struct host_draw q = { .image = p->ask.image,
			       .self = p->rq->reactor->berthd->settings.host,
			       .only = p->ask.host,
			       .limit = how_many };
	uint64_t random[2];
	size_t at;

	p->count = p->seen = p->engineless = 0;
	if (store_hosts_draw(s, &q, take_row, p, e) < 0)
		return -1;
	if (p->engineless > 0 && p->engineless == p->seen)
		return no_engine(p, e);
	if (p->count == 0 && limits_fit(&p->ask.limits, &p->largest, e) < 0)
		return -1;
	if (p->count == 0 && p->tries == 0)
		return nowhere(p, s, e);
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		abort(); /* so few bytes never fail */
	if (placement_choose(p->rooms, p->count, &p->need, random, &at, e) < 0)
		return store_room_retry(s, NULL, e);
	memcpy(p->chosen, p->ids[at], sizeof(p->chosen));
	return 0;
}

/* Its key was used before: who made it then goes on with it, or tells. */
static bool find_maker(struct placing *p, struct store *s)
{
	struct idempotency first;
	struct sandbox sb;
	struct err ignored;

	if (!p->use.key[0] || p->tries > 0 ||
	    store_idempotency_get(s, &p->use, &first, &ignored) < 0 ||
	    store_sandbox_get(s, p->use.owner, first.sandbox_id, &sb, &ignored) < 0)
		return false;
	memcpy(p->chosen, sb.host, sizeof(p->chosen));
	return true;
}

static int choose(struct job *job, struct store *s, struct err *e)
{
	struct placing *p = container_of(job, struct placing, job);

	if (find_maker(p, s))
		return 0;

	if (draw(p, s, DRAWN + (uint32_t)p->tries, e) == 0)
		return 0;
	if (p->seen < DRAWN)
		return -1;
	return draw(p, s, DRAWN_MAX, e);
}

static void on_chosen(struct job *job);

static void look(struct placing *p)
{
	job_submit(p->rq->reactor, request_owner(p->rq), &p->job, choose, on_chosen);
}

static void go(struct placing *p, const char *host)
{
	struct request *rq = p->rq;
	struct berthd *b = rq->reactor->berthd;
	struct peer peer;
	struct err e;

	memcpy(p->tried[p->tries++], host, SANDBOX_HOST_SIZE);
	if (strcmp(host, b->settings.host) == 0)
		return p->here(rq);
	if (peers_get(b->peers, host, &peer, &e) == 0)
		return forward_create(rq, &peer);
	if (!placing_refused(rq, &e))
		request_fail(rq, &e);
}

/* If none takes it, one of this name or identity may still be there: this host looks. */
static void on_chosen(struct job *job)
{
	struct placing *p = container_of(job, struct placing, job);
	struct request *rq = p->rq;

	if (!rq->x) /* nothing was begun for it yet */
		return request_end(rq, 499);
	if (!job->failed)
		return go(p, p->chosen);
	if (p->tries > 0)
		return request_fail(rq, &p->why);
	if (p->ask.may_exist && (job->e.code == ERR_BUSY || job->e.code == ERR_UNSUPPORTED)) {
		p->nowhere = true;
		p->why = job->e;
		return p->here(rq);
	}
	request_fail(rq, &job->e);
}

const struct err *placing_nowhere(const struct request *rq)
{
	return rq->placing && rq->placing->nowhere ? &rq->placing->why : NULL;
}

static bool is_of_the_host(const struct err *why)
{
	return why->code == ERR_BUSY ||
	       (why->reason && strcmp(why->reason, REASON_ENGINE_MISSING) == 0);
}

bool placing_refused(struct request *rq, const struct err *why)
{
	struct placing *p = rq->placing;

	if (!p || p->nowhere || p->tries == PLACING_TRIES || p->ask.host[0] || !is_of_the_host(why))
		return false;
	p->why = *why;
	look(p);
	return true;
}

/* What a sandbox takes that asks for this: what is not said is usual. */
static struct resources need_of(const struct limits *asked)
{
	static const struct {
		enum resource resource;
		enum limit limit;
	} rows[] = {
		{ RESOURCE_MEMORY_MB, LIMIT_MEMORY_MB },
		{ RESOURCE_DISK_MB, LIMIT_DISK_MB },
		{ RESOURCE_CPU_MILLI, LIMIT_CPU_MILLI },
		{ RESOURCE_PIDS, LIMIT_PIDS },
	};
	struct limits usual = limits_usual();
	struct resources need = { 0 };

	for (size_t i = 0; i < array_len(rows); i++) {
		int64_t n = asked->of[rows[i].limit];

		need.of[rows[i].resource] = (uint64_t)(n > 0 ? n : usual.of[rows[i].limit]);
	}
	return need;
}

bool placing_is_open(const struct request *rq)
{
	return rq->reactor->berthd->peers->secret[0] && !rq->from_peer;
}

void placing_begin(struct request *rq, const struct placing_ask *ask,
		   void (*here)(struct request *rq))
{
	struct placing *p;
	struct err ignored;

	if (!placing_is_open(rq))
		return here(rq);
	p = rq->placing = xcalloc(1, sizeof(*p));
	p->rq = rq;
	p->here = here;
	p->ask = *ask;
	p->need = need_of(&ask->limits);
	if (idempotency_read(rq, &p->use, &ignored) < 0) /* said by the host that makes it */
		return here(rq);
	look(p);
}

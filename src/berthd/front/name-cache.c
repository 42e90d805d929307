#include "berthd/front/name-cache.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/runtime/berthd.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

struct address_entry {
	char owner[SANDBOX_OWNER_SIZE]; /* whose key asked; an admin's is its own */
	bool admin;
	char text[IDENTITY_LEGACY_SIZE];
	char id[SANDBOX_ID_SIZE];
	uint64_t until_ms;
};

void name_cache_init(struct name_cache *a)
{
	pthread_mutex_init(&a->lock, NULL);
	a->entries = xcalloc(ADDRESSES_BUCKETS, sizeof(*a->entries));
}

void name_cache_done(struct name_cache *a)
{
	free(a->entries);
}

static bool is_of(const struct address_entry *entry, const struct request *rq)
{
	return entry->admin == (rq->key.role == ROLE_ADMIN) &&
	       strcmp(entry->owner, rq->key.owner) == 0 && strcmp(entry->text, rq->param) == 0;
}

/* Only while its sandbox is known and lives. */
static bool recall(struct name_cache *a, struct sandbox_cache *sandboxes, struct request *rq)
{
	struct address_entry *entry = &a->entries[str_hash(rq->param) % ADDRESSES_BUCKETS];
	char id[SANDBOX_ID_SIZE];
	struct cached_sandbox place;
	bool found;

	pthread_mutex_lock(&a->lock);
	found = entry->until_ms > time_mono_ms() && is_of(entry, rq);
	memcpy(id, entry->id, sizeof(id));
	pthread_mutex_unlock(&a->lock);
	if (!found || !sandbox_cache_get(sandboxes, id, &place) ||
	    place.state == SANDBOX_DELETING ||
	    place.state == SANDBOX_FAILED) /* its name may be another's by now */
		return false;
	memcpy(rq->param, id, sizeof(id));
	return true;
}

static void remember(struct name_cache *a, const struct request *rq, const char *id)
{
	struct address_entry *entry = &a->entries[str_hash(rq->param) % ADDRESSES_BUCKETS];

	pthread_mutex_lock(&a->lock);
	entry->admin = rq->key.role == ROLE_ADMIN;
	memcpy(entry->owner, rq->key.owner, sizeof(entry->owner));
	(void)!str_copy(entry->text, sizeof(entry->text), rq->param);
	(void)!str_copy(entry->id, sizeof(entry->id), id);
	entry->until_ms = time_mono_ms() + ADDRESSES_MS;
	pthread_mutex_unlock(&a->lock);
}

struct lookup {
	struct job job;
	struct request *rq;
	struct sandbox sb;
	void (*next)(struct request *rq);
};

static int look_up(struct job *job, struct store *s, struct err *e)
{
	struct lookup *l = container_of(job, struct lookup, job);
	struct sandbox_search q = {
		.owner = request_owner(l->rq),
		.self = l->rq->key.owner,
		.text = l->rq->param,
	};

	if (sandbox_address_check(q.text, &q.kind, e) < 0)
		return -1;
	return store_sandbox_find(s, &q, &l->sb, e);
}

static void on_looked_up(struct job *job)
{
	struct lookup *l = container_of(job, struct lookup, job);
	struct request *rq = l->rq;
	void (*next)(struct request * rq) = l->next;
	struct err e;

	if (job->failed) {
		e = job->e;
		free(l);
		return request_fail(rq, &e);
	}
	sandbox_cache_put(rq->reactor->berthd->sandboxes, &l->sb);
	remember(rq->reactor->berthd->names, rq, l->sb.id);
	memcpy(rq->param, l->sb.id, sizeof(l->sb.id));
	free(l);
	if (!rq->x) /* nothing was begun for it yet */
		return request_end(rq, 499);
	next(rq);
}

void name_cache_resolve(struct request *rq, void (*next)(struct request *rq))
{
	struct berthd *b = rq->reactor->berthd;
	const struct route *route = rq->route;
	enum sandbox_address kind;
	struct lookup *l;
	struct err e;

	if (!(route->sandbox & ROUTE_SANDBOX))
		return next(rq);
	if (sandbox_address_check(rq->param, &kind, &e) < 0)
		return request_fail(rq, &e);
	if (kind == ADDRESS_ID ||
	    (!(route->sandbox & ROUTE_ANEW) && recall(b->names, b->sandboxes, rq)))
		return next(rq);
	l = xcalloc(1, sizeof(*l));
	l->rq = rq;
	l->next = next;
	job_submit(rq->reactor, request_owner(rq), &l->job, look_up, on_looked_up);
}

#include "berthd/front/route-to-host.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/peer-token.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/front/forward.h"
#include "berthd/runtime/berthd.h"
#include "lib/errno-map.h"
#include "lib/str.h"
#include "store/sandbox.h"

static bool needs_its_host(const struct request *rq)
{
	return rq->reactor->berthd->peers->secret[0] && (rq->route->sandbox & ROUTE_SANDBOX) &&
	       !(rq->route->sandbox & ROUTE_RECORDS);
}

static bool is_deletion(const struct request *rq)
{
	return rq->route->sandbox & ROUTE_DELETES;
}

/* It is not here: a peer that thought so reads the record again. */
static void misdirected(struct request *rq, const char *host)
{
	struct err e;

	if (rq->x)
		(void)!http_reply_header(rq->x, FORWARD_MOVED, "1");
	err_set(&e, ERR_BUSY, "%.60s lives on host %s now", rq->param, host);
	request_fail(rq, &e);
}

static void decide(struct request *rq, const char *host, void (*here)(struct request *rq))
{
	struct berthd *b = rq->reactor->berthd;
	struct peer peer;
	struct err e;

	if (!host[0] || strcmp(host, b->settings.host) == 0)
		return here(rq);
	if (rq->from_peer)
		return misdirected(rq, host); /* one hop, never two */
	/* A wish to delete is written, and its host carries it out when it is back. */
	if (is_deletion(rq) && peers_frozen(b->peers, host))
		return here(rq);
	if (peers_get(b->peers, host, &peer, &e) < 0) {
		sandbox_cache_forget(b->sandboxes, rq->param); /* it may be elsewhere by now */
		return request_fail(rq, &e);
	}
	forward_request(rq, &peer, is_deletion(rq) ? here : NULL);
}

struct search {
	struct job job;
	struct request *rq;
	void (*here)(struct request *rq);
	struct sandbox sb;
};

static int find(struct job *job, struct store *s, struct err *e)
{
	struct search *f = container_of(job, struct search, job);

	if (store_sandbox_get(s, request_owner(f->rq), f->rq->param, &f->sb, e) < 0)
		return -1;
	peers_learn(f->rq->reactor->berthd->peers, s, f->sb.host);
	return 0;
}

static void on_found(struct job *job)
{
	cleanup(free_ptr) struct search *f = container_of(job, struct search, job);
	struct request *rq = f->rq;

	if (!rq->x) /* nothing was begun for it yet */
		return request_end(rq, 499);
	if (job->failed && job->e.code != ERR_NOT_FOUND)
		return request_fail(rq, &job->e);
	if (job->failed)
		return f->here(rq); /* it says what is wrong with the name */
	if (f->sb.state != SANDBOX_GONE)
		sandbox_cache_put(rq->reactor->berthd->sandboxes, &f->sb);
	decide(rq, f->sb.host, f->here);
}

/* A stranger's answer comes from the records, whatever is remembered and wherever it lives. */
static bool is_its_own(const struct request *rq, const struct cached_sandbox *p)
{
	const char *owner = request_owner(rq);

	return !owner || strcmp(owner, p->owner) == 0;
}

void routing_decide(struct request *rq, void (*here)(struct request *rq))
{
	struct berthd *b = rq->reactor->berthd;
	struct search *f;
	struct cached_sandbox place;

	if (!needs_its_host(rq))
		return here(rq);
	/* A memory may be old: before a peer is told that it is mistaken, the record is read. */
	if (sandbox_cache_get(b->sandboxes, rq->param, &place) && is_its_own(rq, &place) &&
	    !peers_lost(b->peers, place.host) &&
	    !(rq->from_peer && strcmp(place.host, b->settings.host) != 0))
		return decide(rq, place.host, here);
	f = xcalloc(1, sizeof(*f));
	f->rq = rq;
	f->here = here;
	job_submit(rq->reactor, request_owner(rq), &f->job, find, on_found);
}

static int elsewhere(const struct berthd *b, const struct peer_token *pass, struct err *e)
{
	err_set(e, ERR_DENIED, "this is host %s, and the pass is for %s", b->settings.host,
		pass->to);
	return err_reason(e, REASON_FORGED_PASS, 0);
}

int routing_admit(struct request *rq, struct err *e)
{
	struct berthd *b = rq->reactor->berthd;
	const char *text = http_header(rq->x, PASS_HEADER);
	struct peer_token_request about = { .secret = b->peers->secret,
					    .method = rq->x->method,
					    .path = rq->x->path,
					    .query = rq->x->query };
	struct peer_token pass;

	if (!text) {
		err_set(e, ERR_DENIED, "only hosts of this cell are answered here");
		return err_reason(e, REASON_FORGED_PASS, 0);
	}
	if (peer_token_read(text, &about, &pass, e) < 0)
		return -1;
	if (strcmp(pass.to, b->settings.host) != 0)
		return elsewhere(b, &pass, e);
	if (peer_token_seen_take(&b->peers->seen, &pass, peers_now_ms(b->peers), e) < 0)
		return -1;
	rq->key.role = pass.role;
	memcpy(rq->key.id, pass.key, sizeof(pass.key));
	memcpy(rq->key.owner, pass.owner, sizeof(pass.owner));
	memcpy(rq->id, pass.request, sizeof(rq->id));
	return 0;
}

#include "berthd/front/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/cluster/host-lease.h"
#include "berthd/cluster/peer-token.h"
#include "berthd/front/cors.h"
#include "berthd/front/name-cache.h"
#include "berthd/front/route-to-host.h"
#include "berthd/runtime/berthd.h"
#include "core/incident.h"
#include "core/trace.h"
#include "http/target.h"
#include "lib/hash.h"
#include "lib/id.h"
#include "lib/str.h"
#include "lib/time.h"

#define SECRET_MAX   200
#define TRACE_HEADER "X-Trace-Id"

_Static_assert(KEY_LOOKUPS_MAX < WORKER_SHARE_MAX / KEY_SOURCES, "unknown keys fill no queue");

static void on_gone(struct http_exchange *x)
{
	struct request *rq = x->data;

	rq->x = NULL;
	if (rq->collecting) /* nothing was begun for it yet */
		request_end(rq, 499);
	else if (rq->on_gone)
		rq->on_gone(rq);
}

static void on_drain(struct http_exchange *x)
{
	struct request *rq = x->data;

	if (rq->on_drain)
		rq->on_drain(rq);
}

static int run_store_handler(struct job *job, struct store *store, struct err *e)
{
	struct request *rq = container_of(job, struct request, job);

	return rq->route->store(rq, store, &rq->reply, e);
}

static void on_store_handler_done(struct job *job)
{
	struct request *rq = container_of(job, struct request, job);

	if (job->failed)
		return request_fail(rq, &job->e);
	request_reply(rq, rq->status, &rq->reply);
}

static void hand_over(struct request *rq)
{
	if (rq->route->loop)
		return rq->route->loop(rq);
	rq->status = 200;
	rq->reply = buf_make(REPLY_MAX);
	job_submit(rq->reactor, request_owner(rq), &rq->job, run_store_handler,
		   on_store_handler_done);
}

/* A copy: the client may go away, and its bytes with it, while a worker still reads them. */
static void on_body(struct http_exchange *x, const char *body, size_t len, const struct err *e)
{
	struct request *rq = x->data;

	rq->collecting = false;
	if (e)
		return request_fail(rq, e);
	rq->body = buf_make(REQUEST_BODY_MAX + 1);
	buf_add(&rq->body, body, len);
	hand_over(rq);
}

static void take_body(struct request *rq)
{
	if (!rq->route->body)
		return hand_over(rq);
	rq->collecting = true;
	http_collect(rq->x, REQUEST_BODY_MAX, on_body);
}

static void on_resolved(struct request *rq)
{
	routing_decide(rq, take_body);
}

/* Whose connection, body and unread output it is, also where another host answers. */
static bool own(struct request *rq)
{
	return http_own(rq->x, (uint8_t)(1 + str_hash(rq->key.owner) % (HTTP_SHARES - 1)));
}

static bool knows(const char *words, const char *name, size_t len)
{
	for (const char *at = words; at && *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == len && strncmp(at, name, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* Where it names something that is text everywhere else, also in the database. */
static int check_text(const char *what, const char *text, struct err *e)
{
	size_t len = strlen(text);

	if (utf8_valid_prefix(text, len) == len)
		return 0;
	err_set(e, ERR_INVALID, "a part of the %s is not UTF-8", what);
	return err_fix(e, "Write names as UTF-8, percent-encoded.");
}

/* A file's name and what a command says are bytes. */
static int check_member(const struct request *rq, const char *at, size_t len, struct err *e)
{
	cleanup(free_ptr) char *value = xcalloc(1, strlen(rq->query) + 1);
	char name[32];
	bool found;

	if (knows("path pattern", at, len) || !str_copy_bytes(name, sizeof(name), at, len))
		return 0;
	if (http_query(rq->query, name, value, strlen(rq->query) + 1, &found, e) < 0)
		return err_wrap(e, "%s", name);
	return check_text("query", value, e);
}

/* Is a member of this name among those that follow? */
static bool comes_again(const char *rest, const char *name, size_t len)
{
	for (const char *at = rest; *at; at += strcspn(at, "&")) {
		at += strspn(at, "&");
		if (strcspn(at, "=&") == len && strncmp(at, name, len) == 0)
			return true;
	}
	return false;
}

/*
 * What is not known would be left out in silence, and of two the second: `?limt=5` is no list of
 * five. Without a key only health is told, and monitors add members of their own against caches.
 */
static int check_query(const struct request *rq, struct err *e)
{
	const char *known = rq->route->query;

	for (const char *at = rq->query; *at; at += strspn(at, "&")) {
		size_t len = strcspn(at, "&"), name = strcspn(at, "=&");

		if (len > 0 && !knows(known, at, name) && rq->route->role != ROLE_ANYONE) {
			err_set(e, ERR_INVALID, "%s %.80s knows no \"%.*s\" in its query",
				rq->method, rq->path, name < 60 ? (int)name : 60, at);
			return known ? err_fix(e, "It knows: %s.", known)
				     : err_fix(e, "It takes no query.");
		}
		if (len > 0 && rq->route->role != ROLE_ANYONE &&
		    comes_again(at + len, at, name))
			return err_set(e, ERR_INVALID, "the query says \"%.*s\" more than once",
				       (int)name, at);
		if (len > 0 && check_member(rq, at, name, e) < 0)
			return -1;
		at += len;
	}
	return 0;
}

static int check_target(const struct request *rq, struct err *e)
{
	if (check_text("path", rq->param, e) < 0 || check_text("path", rq->sub, e) < 0)
		return -1;
	return check_query(rq, e);
}

static void allowed(struct request *rq)
{
	struct err e;

	if (!role_allows(rq->key.role, rq->route->role)) {
		err_set(&e, ERR_DENIED, "a key with the role %s may not do this",
			role_name(rq->key.role));
		err_reason(&e, REASON_ROLE_DENIED, 0);
		return request_fail(rq, &e);
	}
	if (rq->route->role != ROLE_ANYONE && !own(rq)) {
		err_set(&e, ERR_BUSY, "this key's owner has too many connections open");
		err_fix(&e, "Close some that are not needed; event streams hold one each.");
		return request_fail(rq, &e);
	}
	if (check_target(rq, &e) < 0)
		return request_fail(rq, &e);
	http_tag(rq->x, rq->key.id);
	name_cache_resolve(rq, on_resolved);
}

static int find_key(struct job *job, struct store *store, struct err *e)
{
	struct request *rq = container_of(job, struct request, job);

	return store_key_find_by_hash(store, rq->key_hash, &rq->key, e);
}

static void on_key_found(struct job *job)
{
	struct request *rq = container_of(job, struct request, job);

	key_cache_found(rq->reactor->berthd->keys, &rq->key_lookup, rq->key_hash, time_mono_ms(),
			job->failed ? NULL : &rq->key,
			job->failed && job->e.code == ERR_UNAUTHENTICATED);
	if (job->failed && job->e.code == ERR_UNAUTHENTICATED)
		err_reason(&job->e, REASON_BAD_KEY, 0);
	if (job->failed)
		return request_fail(rq, &job->e);
	if (!rq->x) /* nothing was begun for it yet */
		return request_end(rq, 499);
	allowed(rq);
}

/* "Authorization: Bearer KEY", or the header most vendors' SDKs use. */
static const char *secret_of(const struct http_exchange *x)
{
	const char *bearer = http_header(x, "Authorization");

	if (bearer && strncasecmp(bearer, "Bearer ", 7) == 0)
		return bearer + 7;
	return http_header(x, "X-API-Key");
}

static void look_up_key(struct request *rq)
{
	struct err e;

	switch (key_cache_get(rq->reactor->berthd->keys, rq->key_hash, time_mono_ms(), &rq->key,
			      &rq->key_lookup)) {
	case KEY_CACHE_KNOWN:
		return allowed(rq);
	case KEY_CACHE_UNKNOWN:
		err_set(&e, ERR_UNAUTHENTICATED, "this key is not known, or was revoked");
		err_reason(&e, REASON_BAD_KEY, 0);
		return request_fail(rq, &e);
	case KEY_CACHE_BUSY:
		err_set(&e, ERR_BUSY, "too many keys that are not known come from this address");
		return request_fail(rq, &e);
	case KEY_CACHE_ASK:
		break;
	}
	rq->job = (struct job){ .reactor = rq->reactor,
				.owner = OWNER_UNKNOWN,
				.run = find_key,
				.done = on_key_found };
	if (lease_agent_cut_off(rq->reactor->berthd->lease_agent, &rq->job.e) < 0) {
		rq->job.failed = true; /* it would wait for a database that does not answer */
		return on_key_found(&rq->job);
	}
	worker_submit(&rq->reactor->berthd->workers, &rq->job);
}

static void take_secret(struct request *rq, const char *secret)
{
	char from[INCIDENT_SOURCE_SIZE];

	hash_hex(secret, strlen(secret), rq->key_hash);
	http_exchange_peer(rq->x, from, sizeof(from));
	rq->key_lookup.source = key_source(from);
}

static void authenticate(struct request *rq)
{
	const char *secret = secret_of(rq->x);
	struct err e;

	if (rq->route->role == ROLE_ANYONE) {
		rq->key.role = ROLE_ANYONE;
		if (secret && strlen(secret) <= SECRET_MAX) /* the handler may tell more to it */
			take_secret(rq, secret);
		return allowed(rq);
	}
	if (!secret || strlen(secret) > SECRET_MAX) {
		err_set(&e, ERR_UNAUTHENTICATED, "this needs an API key");
		return request_fail(rq, &e);
	}
	take_secret(rq, secret);
	look_up_key(rq);
}

/* Segment by segment; the first {} is decoded into `param`, the second into `sub`. */
static bool path_match(const char *pattern, const char *path, char *param, char *sub,
		       struct err *e)
{
	const char *p = pattern, *at = path;
	char *to = param;

	while (*p == '/' && *at == '/') {
		size_t len = strcspn(++p, "/");

		at++;
		if (strncmp(p, "{}", 2) == 0) {
			if (http_segment(&at, to, REQUEST_PARAM_MAX, e) < 0 || !to[0])
				return false;
			to = sub;
			at -= at > path && at[-1] == '/' ? 1 : 0;
		} else {
			if (strncmp(p, at, len) != 0 || (at[len] && at[len] != '/'))
				return false;
			at += len;
		}
		p += len;
	}
	return !*p && !*at;
}

/* "GET, DELETE": what the path of this request knows. */
static int refuse_method(struct request *rq, const struct buf *allow, struct err *e)
{
	(void)!http_reply_header(rq->x, "Allow", buf_str(allow));
	err_set(e, ERR_INVALID, "%s cannot be done to %.80s", rq->x->method, rq->x->path);
	err_fix(e, "It knows %s; docs/openapi.yaml says more.", buf_str(allow));
	return err_reason(e, "method_not_allowed", 405);
}

/* `allow` gets the methods that the path has. */
static int route_find(struct request *rq, struct buf *allow, struct err *e)
{
	size_t count;
	const struct route *table = routes_table(&count);
	struct err bad = { 0 }; /* what a part of the path has */

	for (size_t i = 0; i < count; i++) {
		if (!path_match(table[i].path, rq->x->path, rq->param, rq->sub, &bad))
			continue;
		if (strcmp(table[i].method, rq->x->method) != 0) {
			buf_addf(allow, "%s%s", allow->len ? ", " : "", table[i].method);
			continue;
		}
		rq->route = &table[i];
		return 0;
	}
	if (allow->len)
		return refuse_method(rq, allow, e);
	err_set(e, ERR_NOT_FOUND, "there is nothing at %.80s", rq->x->path);
	err_reason(e, bad.reason, 0);
	return err_fix(e, "docs/openapi.yaml lists all paths; they begin with /v1/.");
}

/* Who speaks for others must be a host, and hosts have a listener of their own. */
static int refuse_pass(const struct http_exchange *x, struct err *e)
{
	if (!http_header(x, PASS_HEADER))
		return 0;
	err_set(e, ERR_DENIED, "%s is for the hosts of a cell among themselves", PASS_HEADER);
	err_reason(e, REASON_FORGED_PASS, 0);
	return err_fix(e, "Send a key of your own, and not this header.");
}

/* Of two, one would count and the other be left out in silence: another reader may take that. */
static int refuse_twice(const struct http_exchange *x, struct err *e)
{
	static const char *const once[] = { "Authorization", "X-API-Key", "Idempotency-Key",
					    "Range", "Last-Event-ID", TRACE_HEADER,
					    PASS_HEADER };
	bool seen[array_len(once)] = { 0 };
	const char *name, *value;

	for (size_t i = 0; http_header_at(x, i, &name, &value); i++)
		for (size_t k = 0; k < array_len(once); k++) {
			if (strcasecmp(name, once[k]) != 0)
				continue;
			if (seen[k])
				return err_set(e, ERR_INVALID, "%s is sent more than once",
					       once[k]);
			seen[k] = true;
		}
	return 0;
}

/* Its own id, and the client's trace id in front of it. */
static int name_request(struct request *rq, struct err *e)
{
	const char *trace = rq->from_peer ? NULL : http_header(rq->x, TRACE_HEADER);
	bool is_bad = trace && trace_check(trace, e) < 0;
	char own[3 + ID_RANDOM_CHARS + 1] = "rq_";

	id_random(own + 3, ID_RANDOM_CHARS);
	if (!trace_request_id(is_bad ? NULL : trace, own, rq->id, sizeof(rq->id)))
		return err_set(e, ERR_INTERNAL, "no room for the id of a request");
	return is_bad ? -1 : 0;
}

/* Said in every answer but a refused host's, which has no request of its own. */
static void tell_ids(struct request *rq)
{
	const char *end = strchr(rq->id, TRACE_SEPARATOR);
	char trace[REQUEST_ID_SIZE];

	(void)!http_reply_header(rq->x, "X-Request-Id", rq->id);
	if (rq->from_peer) /* the host that took the request says it */
		return;
	snprintf(trace, sizeof(trace), "%.*s", end ? (int)(end - rq->id) : REQUEST_ID_SIZE, rq->id);
	(void)!http_reply_header(rq->x, TRACE_HEADER, trace);
}

/* A name for it; and may it come in by this listener? */
static int admit(struct request *rq, struct err *e)
{
	int named = name_request(rq, e);

	if (rq->from_peer && routing_admit(rq, e) < 0)
		return -1;
	tell_ids(rq);
	if (named < 0 || refuse_twice(rq->x, e) < 0)
		return -1;
	return rq->from_peer ? 0 : refuse_pass(rq->x, e);
}

void pipeline_begin(struct http_exchange *x)
{
	cleanup(buf_done) struct buf allow = buf_make(256);
	struct request *rq = xcalloc(1, sizeof(*rq));
	const char *accept = http_header(x, "Accept");
	struct err e;

	rq->reactor = http_exchange_server(x)->data;
	rq->x = x;
	rq->started_us = time_mono_us();
	snprintf(rq->method, sizeof(rq->method), "%s", x->method);
	rq->path = xstrdup(x->path);
	rq->query = xstrdup(x->query);
	rq->wants_events = accept && strstr(accept, "text/event-stream");
	x->data = rq;
	x->on_gone = on_gone;
	x->on_drain = on_drain;
	rq->from_peer = http_exchange_server(x) == &rq->reactor->peer_server;
	if (admit(rq, &e) < 0)
		return request_fail(rq, &e);
	if (!rq->from_peer)
		cors_begin(rq);
	if (route_find(rq, &allow, &e) < 0)
		return allow.len && !rq->from_peer && cors_asks(rq) ? cors_answer(rq, &allow)
								    : request_fail(rq, &e);
	if (rq->from_peer)
		return allowed(rq);
	authenticate(rq);
}

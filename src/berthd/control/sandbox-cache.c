#include "berthd/control/sandbox-cache.h"

#include <stdlib.h>
#include <string.h>

#include "lib/json.h"
#include "lib/str.h"

struct cache_entry {
	struct cached_sandbox place;
	char *env;                 /* JSON; NULL: none */
	uint64_t version;          /* of the record this is from */
	uint64_t used_ms, busy_ms; /* monotonic; 0: not */
	unsigned busy;             /* how many commands run */
	uint64_t begun;            /* how many ever did */
	unsigned beside;           /* how many pieces of code run in contexts */
	uint64_t oom_told;         /* OOM kills that commands were told of, ever */
	bool dirty;                /* something of these is not in the record */
	bool known;                /* not: forgotten, and only kept for what runs in it or ran */
	struct cache_entry *next;
};

static void entry_free(struct cache_entry *entry)
{
	free(entry->env);
	free(entry);
}

void sandbox_cache_init(struct sandbox_cache *p)
{
	pthread_mutex_init(&p->lock, NULL);
}

void sandbox_cache_done(struct sandbox_cache *p)
{
	for (size_t i = 0; i < CACHE_BUCKETS; i++)
		while (p->buckets[i]) {
			struct cache_entry *entry = p->buckets[i];

			p->buckets[i] = entry->next;
			entry_free(entry);
		}
}

static struct cache_entry **find(struct sandbox_cache *p, const char *id)
{
	struct cache_entry **at = &p->buckets[str_hash(id) % CACHE_BUCKETS];

	while (*at && strcmp((*at)->place.id, id) != 0)
		at = &(*at)->next;
	return at;
}

static void remove_entry(struct sandbox_cache *p, struct cache_entry **at)
{
	struct cache_entry *entry = *at;

	*at = entry->next;
	entry_free(entry);
	p->count--;
}

bool sandbox_cache_get(struct sandbox_cache *p, const char *id, struct cached_sandbox *ret)
{
	struct cache_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry && !entry->known)
		entry = NULL;
	if (entry)
		*ret = entry->place;
	pthread_mutex_unlock(&p->lock);
	return entry;
}

/*
 * Full: one goes, it costs a look at the database later. Never one in which
 * something runs, or whose last use is not written yet: it would be put to sleep
 * as if it were idle. If all are such, there is one more than the maximum.
 */
static void evict(struct sandbox_cache *p)
{
	for (size_t i = 0; i < CACHE_BUCKETS && p->count >= CACHE_MAX; i++) {
		struct cache_entry **at = &p->buckets[i];

		while (*at && ((*at)->busy || (*at)->dirty))
			at = &(*at)->next;
		if (*at)
			remove_entry(p, at);
	}
}

void sandbox_cache_put(struct sandbox_cache *p, const struct sandbox *sb)
{
	struct cache_entry **at;

	pthread_mutex_lock(&p->lock);
	at = find(p, sb->id);
	if (!*at) {
		evict(p);
		at = find(p, sb->id);
		*at = xcalloc(1, sizeof(**at));
		p->count++;
	}
	if ((*at)->known && sb->version < (*at)->version) { /* read before, told later */
		pthread_mutex_unlock(&p->lock);
		return;
	}
	(*at)->version = sb->version;
	memcpy((*at)->place.id, sb->id, sizeof(sb->id));
	memcpy((*at)->place.owner, sb->owner, sizeof(sb->owner));
	memcpy((*at)->place.host, sb->host, sizeof(sb->host));
	free((*at)->env);
	(*at)->env = sb->env[0] && strcmp(sb->env, "{}") != 0 ? xstrdup(sb->env) : NULL;
	(*at)->known = true;
	(*at)->place.generation = sb->generation;
	(*at)->place.state = sb->state;
	(*at)->place.limits = sb->limits;
	pthread_mutex_unlock(&p->lock);
}

void sandbox_cache_forget(struct sandbox_cache *p, const char *id)
{
	struct cache_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry)
		entry->known = false;
	pthread_mutex_unlock(&p->lock);
}

uint64_t sandbox_cache_oom_told(struct sandbox_cache *p, const char *id)
{
	struct cache_entry *entry;
	uint64_t told;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	told = entry ? entry->oom_told : 0;
	pthread_mutex_unlock(&p->lock);
	return told;
}

bool sandbox_cache_oom(struct sandbox_cache *p, const char *id, uint64_t kills, uint64_t told)
{
	struct cache_entry *entry;
	uint64_t others;
	bool own;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	others = entry && entry->oom_told > told ? entry->oom_told - told : 0;
	own = kills > others;
	if (entry && own)
		entry->oom_told++;
	pthread_mutex_unlock(&p->lock);
	return own;
}

static bool names(const struct strv *env, const char *item)
{
	size_t len = strcspn(item, "=") + 1;

	for (size_t i = 0; i < env->len; i++)
		if (strncmp(env->items[i], item, len) == 0)
			return true;
	return false;
}

struct env_text {
	struct strv env;
};

static const struct json_field env_fields[] = { JSON_FIELD_MAP(env_text, env), JSON_FIELD_END };

void sandbox_cache_env(struct sandbox_cache *p, const char *id, struct strv *env)
{
	cleanup(buf_done) struct buf text = buf_make(SANDBOX_ENV_SIZE + 16);
	struct env_text own = { 0 };
	struct cache_entry *entry;
	struct err ignored; /* it was written by us */

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry && entry->env)
		buf_addf(&text, "{\"env\":%s}", entry->env);
	pthread_mutex_unlock(&p->lock);
	if (text.len > 0 &&
	    json_read(buf_str(&text), text.len, env_fields, &own, &ignored) == 0)
		for (size_t i = 0; i < own.env.len; i++)
			if (!names(env, own.env.items[i]))
				strv_add(env, own.env.items[i]);
	strv_done(&own.env);
}

void sandbox_cache_use(struct sandbox_cache *p, const char *id, uint64_t now_ms)
{
	(void)sandbox_cache_busy(p, id, now_ms, 0);
}

bool sandbox_cache_busy(struct sandbox_cache *p, const char *id, uint64_t now_ms, int more)
{
	struct cache_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry) {
		if (more > 0 && entry->busy++ == 0)
			entry->busy_ms = now_ms;
		if (more > 0)
			entry->begun++;
		/* As long as commands end, it is not stuck: each has its own time limit. */
		if (more < 0 && entry->busy > 0)
			entry->busy_ms = --entry->busy ? now_ms : 0;
		entry->used_ms = now_ms;
		entry->dirty = true;
	}
	pthread_mutex_unlock(&p->lock);
	return entry;
}

void sandbox_cache_beside(struct sandbox_cache *p, const char *id, int more)
{
	struct cache_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry && more > 0) {
		entry->beside++;
		entry->begun++;
	}
	if (entry && more < 0 && entry->beside > 0)
		entry->beside--;
	pthread_mutex_unlock(&p->lock);
}

uint64_t sandbox_cache_begun(struct sandbox_cache *p, const char *id, bool *alone)
{
	struct cache_entry *entry;
	uint64_t begun;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	begun = entry ? entry->begun : 0;
	if (alone)
		*alone = entry && entry->busy == 1 && entry->beside == 0;
	pthread_mutex_unlock(&p->lock);
	return begun;
}

void sandbox_cache_limits(struct sandbox_cache *p, const char *id, struct limits *ret)
{
	struct cache_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry)
		*ret = entry->place.limits;
	pthread_mutex_unlock(&p->lock);
}

static bool next_ready(const struct sandbox_cache *p, struct sandbox_cache_cursor *c)
{
	for (; c->bucket < CACHE_BUCKETS; c->bucket++, c->at = 0) {
		const struct cache_entry *entry = p->buckets[c->bucket];

		for (size_t i = 0; entry && i < c->at; i++)
			entry = entry->next;
		for (; entry; entry = entry->next) {
			c->at++;
			if (!entry->known || entry->place.state != SANDBOX_READY)
				continue;
			memcpy(c->id, entry->place.id, sizeof(c->id));
			c->generation = entry->place.generation;
			return true;
		}
	}
	return false;
}

/* Who comes or goes meanwhile may be missed, or told twice. */
bool sandbox_cache_next_ready(struct sandbox_cache *p, struct sandbox_cache_cursor *c)
{
	bool found;

	pthread_mutex_lock(&p->lock);
	found = next_ready(p, c);
	pthread_mutex_unlock(&p->lock);
	return found;
}

void sandbox_cache_used(struct sandbox_cache *p, const char *id, uint64_t *last_ms,
			uint64_t *busy_ms)
{
	struct cache_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	*last_ms = entry ? entry->used_ms : 0;
	*busy_ms = entry ? entry->busy_ms : 0;
	pthread_mutex_unlock(&p->lock);
}

static void take_used(struct cache_entry *entry, uint64_t now_ms, struct sandbox_used *ret)
{
	memcpy(ret->id, entry->place.id, sizeof(ret->id));
	ret->ago_ms = entry->busy || now_ms < entry->used_ms ? 0 : now_ms - entry->used_ms;
	ret->busy_ago_ms = 0;
	if (entry->busy)
		ret->busy_ago_ms = now_ms > entry->busy_ms ? now_ms - entry->busy_ms : 1;
	entry->dirty = entry->busy; /* who is busy is used all the time */
}

size_t sandbox_cache_take_used(struct sandbox_cache *p, uint64_t now_ms, struct sandbox_used *ret,
			       size_t max)
{
	size_t n = 0;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < CACHE_BUCKETS && n < max; i++) {
		struct cache_entry **at = &p->buckets[i];

		while (*at && n < max) {
			if ((*at)->dirty) {
				take_used(*at, now_ms, &ret[n++]);
			} else if (!(*at)->known && !(*at)->busy) {
				remove_entry(p, at);
				continue;
			}
			at = &(*at)->next;
		}
	}
	pthread_mutex_unlock(&p->lock);
	return n;
}

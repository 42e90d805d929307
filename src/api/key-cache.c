#include "api/key-cache.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"

struct key_entry {
	char hash[HASH_HEX_SIZE];
	uint64_t until_ms;
	struct key key;
};

void key_cache_init(struct key_cache *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->entries = xcalloc(KEY_CACHE_BUCKETS, sizeof(*c->entries));
}

void key_cache_done(struct key_cache *c)
{
	free(c->entries);
}

/* The hash is of a secret: any few bits of it spread evenly. */
static struct key_entry *entry_of(struct key_cache *c, const char *hash)
{
	uint32_t n = 0;

	for (int i = 0; i < 6; i++)
		n = n * 31 + (unsigned char)hash[i];
	return &c->entries[n % KEY_CACHE_BUCKETS];
}

bool key_cache_get(struct key_cache *c, const char *hash, uint64_t now_ms, struct key *ret)
{
	const struct key_entry *entry = entry_of(c, hash);
	bool found;

	pthread_mutex_lock(&c->lock);
	found = now_ms < entry->until_ms && strcmp(entry->hash, hash) == 0;
	if (found)
		*ret = entry->key;
	pthread_mutex_unlock(&c->lock);
	return found;
}

void key_cache_put(struct key_cache *c, const char *hash, uint64_t now_ms, const struct key *k)
{
	struct key_entry *entry = entry_of(c, hash);

	pthread_mutex_lock(&c->lock);
	memcpy(entry->hash, hash, sizeof(entry->hash));
	entry->until_ms = now_ms + KEY_CACHE_MS;
	entry->key = *k;
	pthread_mutex_unlock(&c->lock);
}

void key_cache_clear(struct key_cache *c)
{
	pthread_mutex_lock(&c->lock);
	memset(c->entries, 0, KEY_CACHE_BUCKETS * sizeof(*c->entries));
	pthread_mutex_unlock(&c->lock);
}

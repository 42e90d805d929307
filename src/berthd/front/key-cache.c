#include "berthd/front/key-cache.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/str.h"

_Static_assert(KEY_LOOKUPS_MAX <= UINT8_MAX, "what is counted fits");

struct key_entry {
	char hash[HASH_HEX_SIZE];
	uint64_t until_ms;
	struct key key;
};

void key_cache_init(struct key_cache *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->entries = xcalloc(KEY_CACHE_BUCKETS, sizeof(*c->entries));
	c->unknown = xcalloc(KEY_CACHE_BUCKETS, sizeof(*c->unknown));
}

void key_cache_done(struct key_cache *c)
{
	free(c->entries);
	free(c->unknown);
}

/* The hash is of a secret: any few bits of it spread evenly. */
static struct key_entry *entry_of(struct key_entry *table, const char *hash)
{
	uint32_t n = 0;

	for (int i = 0; i < 6; i++)
		n = n * 31 + (unsigned char)hash[i];
	return &table[n % KEY_CACHE_BUCKETS];
}

static bool is_of(const struct key_entry *entry, const char *hash)
{
	return strcmp(entry->hash, hash) == 0;
}

size_t key_source(const char *address)
{
	struct in6_addr ip;
	char net[2 * 8 + 1];

	if (inet_pton(AF_INET6, address, &ip) != 1 || IN6_IS_ADDR_V4MAPPED(&ip))
		return str_hash(address) % KEY_SOURCES;
	str_hex(net, ip.s6_addr, 8);
	return str_hash(net) % KEY_SOURCES;
}

static enum key_cache_answer look(struct key_cache *c, const char *hash, size_t source,
				  uint64_t now_ms, struct key *ret)
{
	const struct key_entry *known = entry_of(c->entries, hash);
	const struct key_entry *unknown = entry_of(c->unknown, hash);

	if (is_of(known, hash) && now_ms < known->until_ms) {
		*ret = known->key;
		return KEY_CACHE_KNOWN;
	}
	if (is_of(unknown, hash) && now_ms < unknown->until_ms)
		return KEY_CACHE_UNKNOWN;
	/* A key that was good before does not wait in line with unknown ones. */
	if (!is_of(known, hash) && c->lookups[source] >= KEY_LOOKUPS_MAX)
		return KEY_CACHE_BUSY;
	return KEY_CACHE_ASK;
}

enum key_cache_answer key_cache_get(struct key_cache *c, const char *hash, uint64_t now_ms,
				    struct key *ret, struct key_lookup *lookup)
{
	enum key_cache_answer answer;

	pthread_mutex_lock(&c->lock);
	answer = look(c, hash, lookup->source, now_ms, ret);
	if (answer == KEY_CACHE_ASK) {
		lookup->cleared = c->cleared;
		lookup->counted = !is_of(entry_of(c->entries, hash), hash);
		c->lookups[lookup->source] += lookup->counted;
	}
	pthread_mutex_unlock(&c->lock);
	return answer;
}

void key_cache_found(struct key_cache *c, const struct key_lookup *lookup, const char *hash,
		     uint64_t now_ms, const struct key *k, bool unknown)
{
	struct key_entry *entry = entry_of(unknown ? c->unknown : c->entries, hash);

	pthread_mutex_lock(&c->lock);
	c->lookups[lookup->source] -= lookup->counted;
	/* What was read before a key was revoked may be that key. */
	if ((k || unknown) && lookup->cleared == c->cleared) {
		*entry = (struct key_entry){ .until_ms = now_ms + KEY_CACHE_MS };
		memcpy(entry->hash, hash, sizeof(entry->hash));
		if (k)
			entry->key = *k;
	}
	pthread_mutex_unlock(&c->lock);
}

void key_cache_clear(struct key_cache *c)
{
	pthread_mutex_lock(&c->lock);
	memset(c->entries, 0, KEY_CACHE_BUCKETS * sizeof(*c->entries));
	c->cleared++;
	pthread_mutex_unlock(&c->lock);
}

#include "api/life/place.h"

#include <stdlib.h>
#include <string.h>

#include "lib/str.h"

struct place_entry {
	struct place place;
	struct place_entry *next;
};

void places_init(struct places *p)
{
	pthread_mutex_init(&p->lock, NULL);
}

void places_done(struct places *p)
{
	for (size_t i = 0; i < PLACES_BUCKETS; i++)
		while (p->buckets[i]) {
			struct place_entry *entry = p->buckets[i];

			p->buckets[i] = entry->next;
			free(entry);
		}
}

static struct place_entry **find(struct places *p, const char *id)
{
	struct place_entry **at = &p->buckets[str_hash(id) % PLACES_BUCKETS];

	while (*at && strcmp((*at)->place.id, id) != 0)
		at = &(*at)->next;
	return at;
}

static void remove_entry(struct places *p, struct place_entry **at)
{
	struct place_entry *entry = *at;

	*at = entry->next;
	free(entry);
	p->count--;
}

bool places_get(struct places *p, const char *id, struct place *ret)
{
	struct place_entry *entry;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry)
		*ret = entry->place;
	pthread_mutex_unlock(&p->lock);
	return entry;
}

/* Full: any one goes, it costs one look at the database later. */
static void make_room(struct places *p)
{
	for (size_t i = 0; i < PLACES_BUCKETS && p->count >= PLACES_MAX; i++)
		if (p->buckets[i])
			remove_entry(p, &p->buckets[i]);
}

void places_put(struct places *p, const struct sandbox *sb)
{
	struct place_entry **at;

	pthread_mutex_lock(&p->lock);
	at = find(p, sb->id);
	if (!*at) {
		make_room(p);
		at = find(p, sb->id);
		*at = xcalloc(1, sizeof(**at));
		p->count++;
	}
	memcpy((*at)->place.id, sb->id, sizeof(sb->id));
	memcpy((*at)->place.owner, sb->owner, sizeof(sb->owner));
	memcpy((*at)->place.host, sb->host, sizeof(sb->host));
	(*at)->place.generation = sb->generation;
	(*at)->place.state = sb->state;
	pthread_mutex_unlock(&p->lock);
}

void places_forget(struct places *p, const char *id)
{
	struct place_entry **at;

	pthread_mutex_lock(&p->lock);
	at = find(p, id);
	if (*at)
		remove_entry(p, at);
	pthread_mutex_unlock(&p->lock);
}

bool places_oom(struct places *p, const char *id, uint64_t oom_kills)
{
	struct place_entry *entry;
	bool more = false;

	pthread_mutex_lock(&p->lock);
	entry = *find(p, id);
	if (entry) {
		more = entry->place.oom_known && oom_kills > entry->place.oom_kills;
		entry->place.oom_known = true;
		entry->place.oom_kills = oom_kills;
	}
	pthread_mutex_unlock(&p->lock);
	return more;
}

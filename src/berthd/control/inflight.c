#include "berthd/control/inflight.h"

#include <stdlib.h>
#include <string.h>

#include "lib/str.h"

struct changing_entry {
	unsigned count;
	struct changing_entry *next;
	char id[];
};

void inflight_init(struct inflight *c)
{
	pthread_mutex_init(&c->lock, NULL);
}

static struct changing_entry **find(struct inflight *c, const char *id)
{
	struct changing_entry **at = &c->buckets[str_hash(id) % CHANGING_BUCKETS];

	while (*at && strcmp((*at)->id, id) != 0)
		at = &(*at)->next;
	return at;
}

void inflight_add(struct inflight *c, const char *id)
{
	struct changing_entry **at;

	pthread_mutex_lock(&c->lock);
	at = find(c, id);
	if (!*at) {
		*at = xcalloc(1, sizeof(**at) + strlen(id) + 1);
		memcpy((*at)->id, id, strlen(id));
	}
	(*at)->count++;
	pthread_mutex_unlock(&c->lock);
}

void inflight_remove(struct inflight *c, const char *id)
{
	struct changing_entry **at, *entry;

	pthread_mutex_lock(&c->lock);
	at = find(c, id);
	entry = *at;
	if (entry && --entry->count == 0) {
		*at = entry->next;
		free(entry);
	}
	pthread_mutex_unlock(&c->lock);
}

bool inflight_has(struct inflight *c, const char *id)
{
	bool found;

	pthread_mutex_lock(&c->lock);
	found = *find(c, id) != NULL;
	pthread_mutex_unlock(&c->lock);
	return found;
}

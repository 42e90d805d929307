#include "berthd/exec/running-set.h"

#include <string.h>

void running_set_init(struct running_set *b)
{
	pthread_mutex_init(&b->lock, NULL);
}

void running_set_done(struct running_set *b)
{
	pthread_mutex_destroy(&b->lock);
}

/* The place of this id, or `count`. */
static size_t find(const struct running_set *b, const char *id)
{
	size_t i = 0;

	while (i < b->count && strcmp(b->ids[i], id) != 0)
		i++;
	return i;
}

void running_set_add(struct running_set *b, const char *id)
{
	pthread_mutex_lock(&b->lock);
	if (b->count < BUSY_MAX)
		memcpy(b->ids[b->count++], id, CONTEXT_NAME_SIZE);
	pthread_mutex_unlock(&b->lock);
}

void running_set_drop(struct running_set *b, const char *id)
{
	size_t i;

	pthread_mutex_lock(&b->lock);
	i = find(b, id);
	if (i < b->count)
		memmove(b->ids[i], b->ids[--b->count], CONTEXT_NAME_SIZE);
	pthread_mutex_unlock(&b->lock);
}

bool running_set_has(struct running_set *b, const char *id)
{
	bool has;

	pthread_mutex_lock(&b->lock);
	has = find(b, id) < b->count;
	pthread_mutex_unlock(&b->lock);
	return has;
}

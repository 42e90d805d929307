#include "berthd/exec/running-set.h"

#include <string.h>

void busy_init(struct busy *b)
{
	pthread_mutex_init(&b->lock, NULL);
}

void busy_done(struct busy *b)
{
	pthread_mutex_destroy(&b->lock);
}

/* The place of this id, or `count`. */
static size_t find(const struct busy *b, const char *id)
{
	size_t i = 0;

	while (i < b->count && strcmp(b->ids[i], id) != 0)
		i++;
	return i;
}

void busy_add(struct busy *b, const char *id)
{
	pthread_mutex_lock(&b->lock);
	if (b->count < BUSY_MAX)
		memcpy(b->ids[b->count++], id, CONTEXT_NAME_SIZE);
	pthread_mutex_unlock(&b->lock);
}

void busy_drop(struct busy *b, const char *id)
{
	size_t i;

	pthread_mutex_lock(&b->lock);
	i = find(b, id);
	if (i < b->count)
		memmove(b->ids[i], b->ids[--b->count], CONTEXT_NAME_SIZE);
	pthread_mutex_unlock(&b->lock);
}

bool busy_has(struct busy *b, const char *id)
{
	bool has;

	pthread_mutex_lock(&b->lock);
	has = find(b, id) < b->count;
	pthread_mutex_unlock(&b->lock);
	return has;
}

#include "berthd/agent/name-lock.h"

#include <string.h>

#include "berthd/runtime/reactor.h"

void name_locks_init(struct name_locks *ts)
{
	pthread_mutex_init(&ts->lock, NULL);
	ts->last = &ts->first;
}

void name_locks_done(struct name_locks *ts)
{
	pthread_mutex_destroy(&ts->lock);
}

static struct turn *first_of(const struct name_locks *ts, const char *key)
{
	struct turn *t = ts->first;

	while (t && strcmp(t->key, key) != 0)
		t = t->next;
	return t;
}

static void on_come(struct job *job)
{
	struct turn *t = container_of(job, struct turn, job);

	t->come(t);
}

static void come(struct turn *t)
{
	t->job = (struct job){ .reactor = t->reactor, .done = on_come };
	reactor_post(t->reactor, &t->job);
}

static bool join(struct name_locks *ts, struct turn *t, bool wait)
{
	bool free;

	pthread_mutex_lock(&ts->lock);
	free = !first_of(ts, t->key);
	if (free || wait) {
		t->next = NULL;
		*ts->last = t;
		ts->last = &t->next;
	}
	if (free)
		come(t);
	pthread_mutex_unlock(&ts->lock);
	return free;
}

void turn_take(struct name_locks *ts, struct turn *t)
{
	(void)join(ts, t, true);
}

bool turn_try(struct name_locks *ts, struct turn *t)
{
	return join(ts, t, false);
}

void turn_give(struct name_locks *ts, struct turn *t)
{
	struct turn **at, *next;

	pthread_mutex_lock(&ts->lock);
	for (at = &ts->first; *at != t; at = &(*at)->next)
		;
	*at = t->next;
	if (ts->last == &t->next)
		ts->last = at;
	next = first_of(ts, t->key);
	if (next)
		come(next);
	pthread_mutex_unlock(&ts->lock);
}

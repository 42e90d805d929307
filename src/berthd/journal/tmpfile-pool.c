#include "berthd/journal/tmpfile-pool.h"

#include <fcntl.h>
#include <signal.h>

#include "lib/base.h"

/* The file is made without the lock: no thread that takes one waits for that. */
static bool make_one(struct tmpfile_pool *s)
{
	int fd;

	pthread_mutex_unlock(&s->lock);
	fd = openat(s->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	pthread_mutex_lock(&s->lock);
	if (fd >= 0)
		s->fds[s->count++] = fd;
	return fd >= 0;
}

static void *make_all(void *arg)
{
	struct tmpfile_pool *s = arg;
	bool able = true;

	pthread_mutex_lock(&s->lock);
	while (!s->closing)
		if (able && s->count < SPARES_MAX)
			able = make_one(s);
		else
			able = pthread_cond_wait(&s->wanted, &s->lock) == 0;
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

void tmpfile_pool_open(struct tmpfile_pool *s, int dir)
{
	sigset_t all, before;

	*s = (struct tmpfile_pool){ .dir = dir };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->wanted, NULL);
	sigfillset(&all); /* signals are the first loop's business */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	s->open = pthread_create(&s->thread, NULL, make_all, s) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void tmpfile_pool_close(struct tmpfile_pool *s)
{
	if (!s->open)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_cond_signal(&s->wanted);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	while (s->count > 0)
		close_fd(&s->fds[--s->count]);
	s->open = false;
}

int tmpfile_pool_take(struct tmpfile_pool *s)
{
	int fd = -1;

	pthread_mutex_lock(&s->lock);
	if (s->count > 0)
		fd = s->fds[--s->count];
	/* In bursts: a file made just now keeps the one that is being named waiting. */
	if (s->count < SPARES_MAX / 2)
		pthread_cond_signal(&s->wanted);
	pthread_mutex_unlock(&s->lock);
	return fd;
}

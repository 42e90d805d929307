#include "berthd/runtime/bus.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/str.h"
#include "lib/time.h"

/* One event, on its way to one loop. */
struct delivery {
	struct job job;
	struct bus_event event;
	char text[]; /* its three strings */
};

static void on_arrived(struct job *job)
{
	struct delivery *d = container_of(job, struct delivery, job);

	job->reactor->berthd->hooks->event(job->reactor, &d->event);
	free(d);
}

/* The copy of `s` at *at, which moves behind it. */
static const char *keep(char **at, const char *s)
{
	size_t size = strlen(s) + 1;
	char *copy = memcpy(*at, s, size);

	*at += size;
	return copy;
}

void bus_open(struct bus *bus)
{
	pthread_mutex_init(&bus->lock, NULL);
	bus->run = time_wall_ms();
}

void bus_close(struct bus *bus)
{
	pthread_mutex_destroy(&bus->lock);
}

void bus_publish(struct berthd *b, const struct bus_event *event)
{
	size_t size = strlen(event->name) + strlen(event->owner) + strlen(event->json) + 3;

	pthread_mutex_lock(&b->bus.lock); /* until all are told: one order for all */
	b->bus.number++;
	for (size_t i = 0; i < b->reactor_count; i++) {
		struct delivery *d = xcalloc(1, sizeof(*d) + size);
		char *at = d->text;

		d->job = (struct job){ .reactor = &b->reactors[i], .done = on_arrived };
		d->event.number = b->bus.number;
		d->event.name = keep(&at, event->name);
		d->event.owner = keep(&at, event->owner);
		d->event.json = keep(&at, event->json);
		reactor_post(&b->reactors[i], &d->job);
	}
	pthread_mutex_unlock(&b->bus.lock);
}

#include "berthd/api/v1/event-ring.h"

#include <stdlib.h>
#include <string.h>

#include "lib/str.h"

int event_id_read(const char *text, struct event_id *ret, struct err *e)
{
	const char *dash = strchr(text, '-');
	char run[24];

	if (!dash || !str_copy_bytes(run, sizeof(run), text, (size_t)(dash - text)) ||
	    str_u64(run, &ret->run, e) < 0 || str_u64(dash + 1, &ret->number, e) < 0) {
		err_set(e, ERR_INVALID, "this is not the id of an event: %.60s", text);
		return err_fix(e, "Send the `id` of the last event you have seen, or none.");
	}
	return 0;
}

static struct event_kept *slot(struct event_ring *ring, uint64_t number)
{
	return &ring->kept[number % EVENT_RING_MAX];
}

static void drop(struct event_kept *k)
{
	free(k->owner);
	free(k->text);
	*k = (struct event_kept){ 0 };
}

void event_ring_done(struct event_ring *ring)
{
	for (size_t i = 0; i < EVENT_RING_MAX; i++)
		drop(&ring->kept[i]);
}

void event_ring_put(struct event_ring *ring, uint64_t number, const char *owner,
		    const struct buf *text)
{
	struct event_kept *k = slot(ring, number);

	drop(k);
	k->owner = xstrdup(owner);
	k->text = xstrdup(buf_str(text));
	ring->last = number;
}

const struct event_kept *event_ring_get(const struct event_ring *ring, uint64_t number)
{
	const struct event_kept *k = &ring->kept[number % EVENT_RING_MAX];

	if (number > ring->last || ring->last - number >= EVENT_RING_MAX || !k->text)
		return NULL;
	return k;
}

uint64_t event_ring_next(const struct event_ring *ring, uint64_t after, bool *gap)
{
	*gap = false;
	if (after >= ring->last)
		return ring->last + 1;
	if (ring->last - after <= EVENT_RING_MAX)
		return after + 1;
	*gap = true;
	return ring->last - EVENT_RING_MAX + 1;
}

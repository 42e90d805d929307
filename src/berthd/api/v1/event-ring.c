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

static size_t share_of(const char *owner)
{
	return str_hash(owner) % EVENT_RING_SHARES;
}

static void drop(struct event_kept *k)
{
	free(k->owner);
	free(k->text);
	*k = (struct event_kept){ 0 };
}

void event_ring_done(struct event_ring *ring)
{
	for (size_t i = 0; i < ring->count; i++)
		drop(&ring->kept[i]);
	ring->count = 0;
}

/* The oldest of the owner that has the most, with the one that comes. */
static size_t to_make_room(const struct event_ring *ring, size_t comes)
{
	size_t most = comes, i = 0;

	for (size_t share = 0; share < EVENT_RING_SHARES; share++)
		if (ring->held[share] > ring->held[most] + (most == comes))
			most = share;
	while (i < ring->count - 1 && share_of(ring->kept[i].owner) != most)
		i++;
	return i;
}

static void make_room(struct event_ring *ring, size_t comes)
{
	size_t i = to_make_room(ring, comes), share = share_of(ring->kept[i].owner);

	ring->gone[share] = ring->kept[i].number;
	ring->held[share]--;
	drop(&ring->kept[i]);
	ring->count--;
	memmove(&ring->kept[i], &ring->kept[i + 1], (ring->count - i) * sizeof(ring->kept[0]));
}

void event_ring_put(struct event_ring *ring, uint64_t number, const char *owner,
		    const struct buf *text)
{
	size_t share = share_of(owner);

	if (ring->count == EVENT_RING_MAX)
		make_room(ring, share);
	ring->kept[ring->count++] = (struct event_kept){
		.number = number,
		.owner = xstrdup(owner),
		.text = xstrdup(buf_str(text)),
	};
	ring->held[share]++;
	ring->last = number;
}

size_t event_ring_after(const struct event_ring *ring, uint64_t number)
{
	size_t i = ring->count;

	while (i > 0 && ring->kept[i - 1].number > number)
		i--;
	return i;
}

bool event_ring_gap(const struct event_ring *ring, const char *owner, uint64_t number)
{
	for (size_t share = 0; share < EVENT_RING_SHARES; share++)
		if (ring->gone[share] > number && (!owner || share == share_of(owner)))
			return true;
	return false;
}

#include "berthd/control/tick.h"

#include <stdlib.h>

#include "berthd/control/capacity.h"
#include "berthd/control/health.h"
#include "berthd/control/pool-level.h"

#define EVERY_MS 1000

struct tick {
	struct reactor *reactor;
	uv_timer_t timer;
};

static void on_time(uv_timer_t *timer)
{
	static void (*const all[])(struct reactor *) = { capacity_tick, pool_level_tick,
							 health_tick };
	const struct tick *t = timer->data;

	for (size_t i = 0; i < array_len(all); i++)
		all[i](t->reactor);
}

struct tick *tick_begin(struct reactor *r)
{
	struct tick *t = xcalloc(1, sizeof(*t));

	t->reactor = r;
	uv_timer_init(&r->loop, &t->timer);
	t->timer.data = t;
	uv_timer_start(&t->timer, on_time, 0, EVERY_MS);
	return t;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

void tick_end(struct tick *t)
{
	uv_close((uv_handle_t *)&t->timer, on_closed);
}

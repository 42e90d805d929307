#include "berthd/control/create.h"

#include <inttypes.h>

#include "berthd/control/capacity.h"
#include "core/limits.h"

static void on_measured(void *data, const struct placement_host *host, const struct err *why);

static void on_tried(struct transition *c, const struct err *why)
{
	struct err e;

	if (!why || !c->full)
		return c->created(c, why);
	if (!c->cleared) {
		c->cleared = true;
		return capacity_clear(c->reactor, c->request, &c->clearing, on_measured, c);
	}
	e = *why;
	err_wrap(&e,
		 "of what was left over %" PRIu64 " were removed, %" PRIu64 " are still there",
		 c->clearing.cleaned, c->clearing.skipped);
	c->created(c, &e);
}

static void on_measured(void *data, const struct placement_host *host, const struct err *why)
{
	struct transition *c = data;
	struct err e;

	if (why)
		return on_tried(c, why);
	/* Only what was asked for; the second time what was usual is filled in. */
	if (!c->cleared && limits_fit(&c->spec.limits, &host->most, &e) < 0)
		return on_tried(c, &e);
	c->host = *host;
	capacity_figures(c->reactor->berthd, &c->figures);
	transition_create(c, on_tried);
}

void control_create(struct transition *c, transition_fn *done)
{
	c->created = done;
	capacity_measure(c->reactor, c->request, on_measured, c);
}

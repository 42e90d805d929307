/* What happened, told to every loop: from any thread, to whatever follows there. */
#pragma once

#include "core/sandbox.h"

struct berthd;

struct bus_event {
	const char *name;
	const char *owner; /* of the sandbox it is about */
	const char *json;  /* an object */
};

/* Each loop's reactor_hooks.event is called, later. */
void bus_publish(struct berthd *b, const struct bus_event *event);

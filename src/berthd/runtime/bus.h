/* What happened, told to every loop: from any thread, to whatever follows there. */
#pragma once

#include <pthread.h>

#include "core/sandbox.h"

struct berthd;

struct bus_event {
	const char *name;
	const char *owner; /* of the sandbox it is about */
	const char *json;  /* an object */
	uint64_t number;   /* given by bus_publish(): from 1 on, the same in every loop */
};

/* All loops are told in one order. */
struct bus {
	pthread_mutex_t lock;
	uint64_t run;    /* which run of berthd it is: when it began, in ms since 1970 */
	uint64_t number; /* of the newest event */
};
void bus_open(struct bus *bus);
void bus_close(struct bus *bus);

/* Each loop's reactor_hooks.event is called, later. */
void bus_publish(struct berthd *b, const struct bus_event *event);

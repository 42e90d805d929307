/* Which contexts have a run under way through this berthd, on whatever loop. */
#pragma once

#include <pthread.h>

#include "store/context.h"

#define BUSY_MAX 4096 /* more are not told as busy */

struct running_set {
	pthread_mutex_t lock;
	size_t count;
	char ids[BUSY_MAX][CONTEXT_NAME_SIZE]; /* one for each run */
};

void running_set_init(struct running_set *b);
void running_set_done(struct running_set *b);
void running_set_add(struct running_set *b, const char *id);
void running_set_drop(struct running_set *b, const char *id);
bool running_set_has(struct running_set *b, const char *id);

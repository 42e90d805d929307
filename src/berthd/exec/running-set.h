/* Which contexts have a run under way through this berthd, on whatever loop. */
#pragma once

#include <pthread.h>

#include "store/context.h"

#define BUSY_MAX 4096 /* more are not told as busy */

struct busy {
	pthread_mutex_t lock;
	size_t count;
	char ids[BUSY_MAX][CONTEXT_NAME_SIZE]; /* one for each run */
};

void busy_init(struct busy *b);
void busy_done(struct busy *b);
void busy_add(struct busy *b, const char *id);
void busy_drop(struct busy *b, const char *id);
bool busy_has(struct busy *b, const char *id);

/*
 * Having the pool written out: btrfs counts what a sandbox holds only then. It
 * costs every sandbox that writes, so there is one at a time, and a pause between two:
 * all that asked meanwhile share the next one.
 */
#pragma once

#include <uv.h>

#include "lib/base.h"

struct call;
struct node;

struct sync {
	struct node *node;
	uv_timer_t pause;      /* until the next one may begin */
	bool working, pausing; /* one is under way; it is too soon for another */
	uint64_t began_ms;     /* the one under way: since 1970 */
	struct call *asked;    /* since it began: for the next one */
	struct call *served;   /* by the one under way */
};

void sync_open(struct node *n);
void sync_close(struct node *n);

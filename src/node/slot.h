/*
 * Slots: the numbers sandboxes are told apart by on a host. A number decides 65,536
 * ids, an address and a link, so what two sandboxes may not share, they do not share.
 *
 * Some slots are warm: their network namespace and link are made already, and to claim
 * one is to take its number and a descriptor. A namespace serves one sandbox once. It is
 * held by this process or by those of the sandbox and by nothing else, so it ends with
 * them, whichever process is killed. A number that was given back rests before it is given
 * away again, so that an address which a process still remembers is no other sandbox's.
 */
#pragma once

#include <uv.h>

#include "lib/err.h"

#define SLOT_COUNT    60000
#define SLOT_REST_MS  60000
#define SLOT_WARM_MAX 1024

struct slots {
	uv_loop_t *loop;
	int router;                  /* its network namespace */
	size_t wanted;               /* warm ones */
	struct slots_memory *memory; /* RUN/slots: outlives this process, not this boot */
	uint8_t used[(SLOT_COUNT + 7) / 8];
	struct warm_slot {
		uint32_t number;
		int netns;
	} warm[SLOT_WARM_MAX]; /* the first `warm_count`, oldest first */
	size_t warm_count;
	struct making *making; /* more of them are being made */
	uv_timer_t again;      /* after that went wrong */
};

/* With loop, router and wanted set. Warming begins with slots_warm_up(). */
must_check int slots_open(struct slots *s, int run_fd, struct err *e);
void slots_close(struct slots *s);

/* Make as many warm ones as are missing; returns at once. */
void slots_warm_up(struct slots *s);

/* `*netns` is yours; -1 if no warm one was left, and one has to be made. */
must_check int slot_claim(struct slots *s, uint32_t *number, int *netns, struct err *e);
void slot_keep(struct slots *s, uint32_t number); /* it is a sandbox's already */

/* Before and after the record that names it is removed. */
void slot_rest(struct slots *s, uint32_t number);
void slot_give_back(struct slots *s, uint32_t number);
bool slot_is_used(const struct slots *s, uint32_t number);

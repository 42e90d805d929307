/* What each verb does. A verb answers at once, or begins something and answers when it is done. */
#pragma once

#include "lib/log.h"
#include "node/allocation.h"
#include "node/link.h"

void verb_begin(struct call *c);

/* One file each: */
void verb_create(struct call *c);
void verb_start(struct call *c);
void verb_stop(struct call *c);
void verb_destroy(struct call *c);
void verb_image(struct call *c);
void verb_inventory(struct call *c);
void verb_limit(struct call *c);
void verb_sync(struct call *c);
void verb_group(struct call *c);
void verb_processes(struct call *c);

/* The allocation's call is over; a destroy that waited for it begins. */
struct call *allocation_release(struct allocation *a);

/*
 * A call that waited for an allocation begins; NULL is fine. With an error, what was
 * waited for was not done.
 */
void allocation_go_on(struct call *waited, const struct err *why);

/*
 * What is there makes room, and then this create begins: all of it, or its
 * processes alone where the create goes on with the disk it had.
 */
void allocation_supersede(struct allocation *a, struct call *by, bool keep_disk);

/* A verb may begin on it only if no other is under way. */
must_check int allocation_claim(struct allocation *a, struct call *c, struct err *e);

/* Nothing of it gets through the router any more, and it gives back its namespace. */
void allocation_cut_off(struct allocation *a);

/* Its processes ended by themselves: the followers are told. */
void verb_tell_ended(const struct allocation *a);
void verb_news(struct node *n, const char *name); /* the same, for lists on their way */
void verb_end_listings(struct node *n);
void verb_forget_followers(struct node *n); /* those whose link is gone */

/* Cgroups, and what the engine wrote down about it; its processes must be gone. */
must_check int allocation_remove_traces(struct allocation *a, struct err *e);

/* Observe it from host facts alone. */
void allocation_observe(struct node *n, const char *sandbox, uint64_t generation,
			struct node_observation *ret);

void allocation_log(const struct allocation *a, enum log_level level, const char *msg,
		    const char *why);

/* What berth-node saw of the version of a sandbox's init, written into its record. */
#pragma once

#include "berthd/runtime/reactor.h"
#include "core/guest.h"
#include "core/sandbox.h"
#include "proto/node.h"

/* Beside the version of this berthd. */
struct guest_versions guest_seen(const struct node_observation *o);

/*
 * Write it over the version of the record that was read; if the two differ, as one event of its
 * log. `sb` is the record as it is then, or the one that was given.
 */
typedef void guest_fn(void *data, const struct sandbox *sb, const struct err *why);
void guest_record(struct reactor *r, const struct sandbox *sb, struct guest_versions seen,
		  guest_fn *done, void *data);

/*
 * The links that may speak in the router: `live`, a set of the packet rules with one element
 * for each link and the one address it may speak for. The rules are loaded once; what
 * changes is an element, in a few microseconds however many there are.
 */
#pragma once

#include "node/netlink.h"
#include "proto/node.h"

/* The rules themselves, with no link let in; this process must be in the router. */
must_check int nft_allowlist_load_rules(struct err *e);

/* `nl` speaks NETLINK_NETFILTER in the router. Said again, each is harmless. */
must_check int nft_allowlist_add(struct netlink *nl, uint32_t slot, struct err *e);
must_check int nft_allowlist_remove(struct netlink *nl, uint32_t slot, struct err *e);
enum presence nft_allowlist_observe(struct netlink *nl, uint32_t slot);

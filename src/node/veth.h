/*
 * The wire of a slot: a pair of ends, `eth0` in the sandbox's network namespace
 * and `s<slot>` in the router, with the addresses and routes that lead from one
 * to the other and nowhere else. It goes away with either namespace.
 */
#pragma once

#include "lib/err.h"
#include "node/netlink.h"
#include "proto/node.h"

#define VETH_NAME_SIZE 16

/* The number of the slot decides both. */
uint32_t veth_address(uint32_t slot); /* in network order */
void veth_address_text(uint32_t slot, char out[ROUTER_ADDRESS_SIZE]);
void veth_name(uint32_t slot, char out[VETH_NAME_SIZE]);

/* What the router needs once; said again it is harmless. This process must be in it. */
must_check int veth_prepare_router(struct err *e);

/*
 * The next three are for children, as they wait for the kernel and go from one namespace to
 * another. The first enters a new one that has nothing but this wire, and stays there.
 */
must_check int veth_make(int router, uint32_t slot, struct err *e);

/* Say which allocation has it, for an operator; "ip -d link" shows it. */
must_check int veth_label(int router, uint32_t slot, const char *allocation, struct err *e);

/* Absent is fine. */
must_check int veth_remove(int router, uint32_t slot, struct err *e);

/* `nl` speaks NETLINK_ROUTE in the router; `label` is empty where no allocation has it yet. */
typedef void veth_fn(uint32_t slot, const char *label, void *arg);
must_check int veth_list(struct netlink *nl, veth_fn *each, void *arg, struct err *e);

/* Which one has this label. */
enum presence veth_find(struct netlink *nl, const char *label, uint32_t *slot);

/* `probe`: any socket in the router. Never waits. */
enum presence veth_observe(int probe, uint32_t slot);

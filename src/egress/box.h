/*
 * The sandboxes this process knows: each has an address of its own, a policy,
 * what it has used, and the names it was told addresses for.
 *
 * A name gets an address out of 198.18.0.0/15 that means it, to this box alone:
 * so a connection says which name was meant, and nothing was asked outside.
 */
#pragma once

#include "core/network.h"
#include "lib/buf.h"
#include "proto/egress.h"

#define BOX_NAMES_MAX       256  /* of one box; then the oldest goes */
#define BOX_NAME_LEN_MAX    128  /* longer ones carry data, not names */
#define BOX_CONNECTIONS_MAX 512  /* of one box at once */
#define BOX_SHARE           8    /* and no more than this part of those that are left */
#define BOX_EVENTS_MAX      32   /* kept until they are told */
#define BOXES_BUCKETS       8192 /* a power of two */
#define BOX_NAMES_BASE      0xc6120000U
#define BOX_NAMES_BITS      15

/* A bucket of tokens: so many at once, so many a second. */
struct tokens {
	uint64_t at_ms;
	uint32_t thousandths;
};

/* What was used; only grows. */
struct box_use {
	uint64_t connections, requests, bytes_out, bytes_in;
};

struct conn;
struct authority;

struct box {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation, version;
	uint32_t address;
	struct network network;
	struct egress_secret *secrets;
	size_t secret_count;
	char ca_seed[EGRESS_SEED_SIZE];
	struct authority *authority; /* made when it is first needed */

	struct box_use use, told;
	uint64_t since_ns; /* `use` has counted all of it from then on */
	struct tokens questions, fresh_names, dials, tellings;
	struct {
		char *name;
		uint64_t asked; /* when, as a count */
	} names[BOX_NAMES_MAX];
	uint64_t asked;

	struct conn *conns;
	size_t conn_count;

	struct egress_event *events; /* room for BOX_EVENTS_MAX; NULL: none */
	size_t event_count;
	uint32_t events_lost;

	struct box *next_address, *next_sandbox;
};

struct boxes {
	struct box *by_address[BOXES_BUCKETS], *by_sandbox[BOXES_BUCKETS];
	size_t count;
};

struct box *boxes_at(const struct boxes *all, uint32_t address);      /* or NULL */
struct box *boxes_find(const struct boxes *all, const char *sandbox); /* or NULL */
struct box *boxes_add(struct boxes *all, const char *sandbox, uint32_t address);
void boxes_remove(struct boxes *all, struct box *b); /* without connections; frees it */

/* The address that means this name from now on, in host order. */
uint32_t box_name_address(struct box *b, const char *name);
const char *box_name_of(const struct box *b, uint32_t address); /* or NULL */
bool box_address_is_name(uint32_t address);

/* One token, if there is one. */
bool tokens_take(struct tokens *t, uint32_t burst, uint32_t per_second, uint64_t now_ms);

/* Which of its secrets go to that host; NULL behind the last. `*i` begins with 0. */
const struct egress_secret *box_secret(const struct box *b, const char *host, size_t *i);

/* Something was refused: kept to be told, the same thing only once. */
struct refusal {
	const char *kind, *name, *rule;
	uint16_t port;
};
void box_refused(struct box *b, const struct refusal *r, uint64_t wall_ms);

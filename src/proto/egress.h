/*
 * What berthd and berth-egress say to each other over one SOCK_SEQPACKET Unix
 * socket: one record a packet.
 *
 * Down: a POLICY says whose connections come from an address; the RULEs and
 * SECRETs it announces follow at once, and with the last of them all of it
 * takes effect, or nothing does. DROP forgets a sandbox. A policy older than
 * the one in force changes nothing: the answer says which one is. ASK is for what a
 * sandbox has used by now.
 *
 * Up: CONFIRM for every POLICY and DROP, EVENT for what was refused, COUNTS
 * for what was used, an ANSWER for every ASK. A berth-egress that can be asked begins a
 * link with the COUNTS of no sandbox: one of before says nothing, and is not asked.
 */
#pragma once

#include "proto/record.h"

#define EGRESS_PACKET_MAX   (16 * 1024)
#define EGRESS_VERSION      1
#define EGRESS_NAME_SIZE    64 /* a sandbox id */
#define EGRESS_HOST_SIZE    254
#define EGRESS_PORTS_SIZE   128
#define EGRESS_METHODS_SIZE 80
#define EGRESS_PATHS_SIZE   512
#define EGRESS_HEADER_SIZE  64
#define EGRESS_VALUE_SIZE   4096
#define EGRESS_SEED_SIZE    65

enum egress_kind {
	EGRESS_NONE,
	EGRESS_POLICY,
	EGRESS_RULE,
	EGRESS_SECRET,
	EGRESS_DROP,
	EGRESS_CONFIRM,
	EGRESS_EVENT,
	EGRESS_COUNTS,
	EGRESS_ASK,
	EGRESS_ANSWER,
	EGRESS_KIND_COUNT
};

struct egress_policy {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation;
	uint64_t version;
	uint32_t address; /* host order: the slot's */
	uint32_t mode;    /* enum network_mode; 0: nothing at all */
	uint32_t locked;
	uint32_t rules, secrets; /* how many follow */
	/* 0: any */
	uint64_t max_connections, max_requests, max_bytes_out;
	/* used so far, at least */
	uint64_t connections, requests, bytes_out, bytes_in;
	/* hex: what the box's own CA is made of; empty: none */
	char ca_seed[EGRESS_SEED_SIZE];
};

struct egress_rule {
	char host[EGRESS_HOST_SIZE];
	char ports[EGRESS_PORTS_SIZE]; /* "443 80" */
	char methods[EGRESS_METHODS_SIZE];
	char paths[EGRESS_PATHS_SIZE];
	uint32_t bootstrap;
};

struct egress_secret {
	char name[EGRESS_NAME_SIZE];
	char host[EGRESS_HOST_SIZE];
	char methods[EGRESS_METHODS_SIZE];
	char paths[EGRESS_PATHS_SIZE];
	char header[EGRESS_HEADER_SIZE];
	char value[EGRESS_VALUE_SIZE];
};

struct egress_drop {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation;
};

struct egress_confirm {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation;
	uint64_t version; /* in force now; 0: the box is closed */
	char why[200];    /* of a policy that was refused; empty: it was not */
};

struct egress_event {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation;
	uint64_t at_ms;
	char kind[24]; /* what was refused: "name", "port", "address", ... */
	char name[EGRESS_HOST_SIZE];
	uint32_t port;
	char rule[EGRESS_HOST_SIZE]; /* which rule or limit said no */
	uint32_t count;              /* the same, so often */
};

struct egress_counts {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation;
	uint64_t connections, requests, bytes_out, bytes_in;
};

struct egress_ask {
	char sandbox[EGRESS_NAME_SIZE];
	uint64_t generation;
	uint64_t number; /* the answer's, too */
};

struct egress_answer {
	uint64_t number;
	/* Two counts can be compared only if this is the same in both. 0: nothing is known of it */
	uint64_t since_ns;
	uint64_t requests;
};

union egress_any {
	struct egress_policy policy;
	struct egress_rule rule;
	struct egress_secret secret;
	struct egress_drop drop;
	struct egress_confirm confirm;
	struct egress_event event;
	struct egress_counts counts;
	struct egress_ask ask;
	struct egress_answer answer;
};

void egress_encode(struct buf *out, enum egress_kind kind, const void *record);
must_check int egress_decode(struct bytes packet, enum egress_kind *kind, union egress_any *ret,
			     struct err *e);

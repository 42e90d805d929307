/*
 * berth-egress: the only way out of a sandbox. It has no privilege: the sockets
 * that sandboxes reach are made by berth-node and handed over, and what may pass
 * is told by berthd. It dials the outside itself, by the name that was allowed.
 */
#pragma once

#include <uv.h>

#include "egress/box.h"
#include "egress/host-addresses.h"
#include "egress/resolve.h"
#include "egress/upstream-tls.h"
#include "lib/config.h"
#include "lib/log.h"
#include "lib/packet.h"

#define EGRESS_CONNECTIONS_MAX 16384
#define EGRESS_LINKS_MAX       64
#define EGRESS_LISTENERS_MAX   4

struct egress_settings {
	char socket[104];
	char socket_user[64];
	char node_socket[104];
	char resolver[256];
	char trust_file[256];
	char log_level[LOG_WORD_SIZE], log_format[LOG_WORD_SIZE];
};
extern const struct setting egress_settings_table[];

struct egress;

/* A socket sandboxes reach: TCP, or UDP. */
struct listener {
	uv_poll_t poll;
	struct egress *egress;
	int fd;
	bool datagrams;
};

struct egress {
	struct egress_settings settings;
	uv_loop_t loop;
	struct boxes boxes;
	struct resolver resolver;
	struct upstream_tls trust;
	struct host_addresses own;
	size_t conn_count;
	char *read_buffer;

	uid_t peer_uid; /* berthd's */
	int listen_fd;  /* for berthd */
	uv_poll_t listen_poll;
	struct control *controls;
	uv_timer_t tell; /* events and counts */

	int node_fd; /* -1: berth-node is not there */
	uv_poll_t *node_poll;
	uv_timer_t node_retry;
	struct listener *listeners[EGRESS_LISTENERS_MAX];
	size_t listener_count; /* handed over since berth-node was reached */

	uv_signal_t on_term, on_int;
};

must_check int egress_open(struct egress *g, struct err *e);
void egress_close(struct egress *g);

/* Say who refused what, for the log and for berthd. */
void egress_refuse(struct egress *g, struct box *b, const struct refusal *r);

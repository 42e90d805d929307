/*
 * One send may be 64 datagrams (UDP_SEGMENT), and a pair of ends passes them on as one packet:
 * the rules of the router, which count packets, count one. Turned off they are cut apart before.
 */
#pragma once

#include "lib/err.h"

/* Of this link, in the network namespace of this process. A kernel without them is fine. */
must_check int udp_segments_turn_off(const char *link, struct err *e);

/*
 * The way into a sandbox: the socket on which its init answers.
 *
 * crun: bound by us in a directory the guest cannot see, so nothing inside can
 * replace it. runsc: bound by the guest on its own disk, so within its quota,
 * where it could put a link instead; so it is opened without following any, looked at, and
 * connected to through the descriptor.
 */
#pragma once

#include "node/allocation.h"

/* A listening socket for init, to be passed at start. */
must_check int init_socket_listen(struct allocation *a, int *ret, struct err *e);

/* ERR_BUSY: not there yet (runsc binds it when init comes up). */
must_check int init_socket_connect(const struct allocation *a, int *ret, struct err *e);

/* May its init be given work? One that outlived an upgrade may be of another version. */
must_check int init_socket_understands(const struct allocation *a, struct err *e);

/* For an engine that cannot pass a socket: is the shared directory there, and a plain one? */
must_check int init_socket_share(const struct allocation *a, struct err *e);

/* Ask init whether it is there, again and again until its time is over. `done` is called once. */
void init_socket_hello(struct allocation *a,
		       void (*done)(struct allocation *a, const struct err *why));

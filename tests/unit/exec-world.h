/*
 * A loop of berthd whose berth-node and whose init the test plays itself, in the same thread: what
 * is done through init runs against real sockets and a peer that says what the test wants.
 */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/berthd.h"
#include "proto/frame.h"

#define SANDBOX    "sb_c1_0123456789abcdefghij" /* ready, of "me" */
#define GENERATION 7

extern struct berthd b;
extern struct journals js;

void world_open(void); /* again: nothing */
struct reactor *loop(void);
struct reactor *other(void);   /* a second loop, that sends mail to what the first one has */
struct reactor *current(void); /* whose posted jobs are run now; NULL: none */
void turn(void);               /* of the loop, of berth-node, and of all jobs that were posted */

/* The next frame that init gets, on the connection that was asked for last; it must be this one. */
struct bytes expect(enum frame_type type);
void say(const struct buf *frame); /* what init sends */
void hang_up(void);                /* init's end of the connection closes */
bool is_hung_up(void);             /* berthd has closed its own */

/* A command that runs: init was found, and has said so. */
struct journal *begin_exec(const char *id, uint32_t flags);
void say_started(void);
void say_exited(uint32_t code);

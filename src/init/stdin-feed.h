/*
 * The standard input of a command, on its way: bytes that the peer sent and the command has not
 * read. There is a limit to them, and the peer is told how many are out of our hands.
 */
#pragma once

#include "lib/buf.h"
#include "proto/reader.h"

struct stdin_feed {
	struct buf bytes;
	uint32_t taken; /* since the peer was last told so */
	bool ended;     /* no more comes */
};

struct stdin_feed stdin_feed_make(void);

/*
 * What comes after its end, or for a command that has closed its own (`open` is false), goes
 * nowhere and counts as taken.
 */
void stdin_feed_add(struct stdin_feed *f, struct bytes more, bool open);

/* As much as *fd takes; it is closed at the end. `later`: there is none yet. */
void stdin_feed_write(struct stdin_feed *f, int *fd, bool later);

bool stdin_feed_can_take(const struct stdin_feed *f);
bool stdin_feed_tells(const struct stdin_feed *f); /* so much was taken that the peer must know */

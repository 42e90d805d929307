/*
 * What a key has open when it is revoked (streams, terminals, commands that are waited for) ends
 * as if its client had gone, on every host of the cell: within KEY_WATCH_MS of the last request
 * that it could begin (KEY_CACHE_MS). A key is checked when a request begins; without this a
 * stream would go on for as long as its client likes.
 */
#pragma once

#include "berthd/runtime/reactor.h"

#define KEY_WATCH_MS 5000

struct key_watch;

struct key_watch *key_watch_begin(struct reactor *r);
void key_watch_end(struct key_watch *w); /* NULL is fine */

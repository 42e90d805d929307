/*
 * Regular expressions that cost the same whatever they are: what a stranger asks
 * to be looked for in what another stranger writes.
 *
 * An expression is an automaton with at most PATTERN_PLACES places (each letter,
 * class or anchor in it is one), and where it may be is one machine word. A byte
 * of the text is one step of it; nothing is looked at twice, nothing is kept but
 * that word. It is looked for in every line.
 *
 *   x . [a-z] [^a-z] \d \D \w \W \s \S \t ^ $ \b (x) (?:x) x|y x* x+ x?
 *
 * Counts ({n}), references to groups (\1) and looks ahead or behind are not known.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

#define PATTERN_PLACES 62

/* What stands between the bytes. */
enum pattern_mark {
	PATTERN_LINE = 256, /* a line begins */
	PATTERN_LINE_END,
	PATTERN_WORD, /* a word begins or ends */
	PATTERN_SYMBOLS
};

struct pattern {
	uint64_t follow[PATTERN_PLACES + 1]; /* the places that may come after this one */
	uint64_t on[PATTERN_SYMBOLS];        /* the places that this byte or mark can be */
	uint64_t last;                       /* the places at which it has been found */
	uint64_t follow_8[8][256];           /* of every eight places at once: the same for all */
	unsigned places;
};

/* One text it is looked for in. */
struct pattern_look {
	uint64_t at;  /* where it may be */
	bool in_line; /* a line has begun */
	bool in_word; /* the last byte was of a word */
};

/* `fold`: small and large letters are the same. */
must_check int pattern_read(const char *text, bool fold, struct pattern *ret, struct err *e);

/* True if it is there, counting from what was looked at before. */
bool pattern_find(const struct pattern *p, struct pattern_look *l, const uint8_t *data, size_t len);
bool pattern_find_end(const struct pattern *p, struct pattern_look *l); /* the text is over */

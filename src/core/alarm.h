/*
 * The one next deadline of a sandbox at rest, derived from its record: it was
 * not used for so long that it should sleep, was busy for so long that no client
 * can be waiting for it, or its lifetime is over. States that wait for
 * something have a deadline of their own: core/lifecycle.h.
 *
 * Uses are written some time after they were made. The berthd that asks adds those it
 * knows of, but an earlier one may have died with the last of its own: so nothing
 * counts as unused since before this berthd began.
 *
 * A busy sandbox is written down as used all the time: one whose last use is old
 * is busy no more, and the process that knew of its end has died.
 *
 * A sandbox used meanwhile has a later alarm than the one stored: the caller that
 * is woken by an alarm asks again, and only what is due then is done.
 */
#pragma once

#include "core/sandbox.h"

enum alarm_kind {
	ALARM_NONE,
	ALARM_IDLE,
	ALARM_STUCK,
	ALARM_AGE,
	ALARM_KIND_COUNT
};

struct alarm_rules {
	unsigned divisor;      /* of all constants */
	uint64_t unwritten_ms; /* a use may be so old before the record knows of it */
	uint64_t began_ms;     /* uses before that may be lost; later ones are all in sb */
};

struct alarm {
	enum alarm_kind kind;
	uint64_t at_ms; /* NEVER, of none */
};

/* Of a sandbox that is ready, asleep or failed; of others none. */
struct alarm alarm_of(const struct sandbox *sb, const struct alarm_rules *rules,
		      uint64_t now_ms);

const char *alarm_name(enum alarm_kind k);

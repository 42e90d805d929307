#include "lib/phase.h"

#include <stdio.h>
#include <stdlib.h>

#include "lib/log.h"

__attribute__((weak)) bool phase_bugs_are_fatal(void)
{
	return false;
}

static const char *name_of(const struct phase_table *t, unsigned phase)
{
	return phase < t->count ? t->names[phase] : "none";
}

bool phase_move(const struct phase_table *t, uint8_t *phase, unsigned to)
{
	char msg[160];

	if (*phase < t->count && to < t->count && (t->next[*phase] & PHASE_BIT(to))) {
		*phase = (uint8_t)to;
		return true;
	}
	snprintf(msg, sizeof(msg), "phase: illegal move of %s from %s to %s", t->what,
		 name_of(t, *phase), name_of(t, to));
	log_event(LOG_ERROR, msg, NULL);
	if (phase_bugs_are_fatal())
		abort();
	return false;
}

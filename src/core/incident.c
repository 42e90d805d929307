#include "core/incident.h"

#include <string.h>

#include "lib/str.h"

static const char *const kinds[] = {
	REASON_BAD_KEY,
	REASON_ROLE_DENIED,
	REASON_FORGED_PASS,
	REASON_REPLAYED_PASS,
	REASON_PATH_ESCAPE,
	REASON_INVALID_PORT,
};

_Static_assert(array_len(kinds) <= INCIDENT_ROWS - INCIDENT_SOURCES_MAX, "a row for each kind");

const char *incident_kind(const struct err *e)
{
	for (size_t i = 0; e->reason && i < array_len(kinds); i++)
		if (strcmp(e->reason, kinds[i]) == 0)
			return kinds[i];
	return NULL;
}

static struct incident *find(struct incident_window *w, const char *kind, const char *source,
			     const char *sandbox)
{
	for (size_t i = 0; i < w->count; i++)
		if (strcmp(w->rows[i].source, source) == 0 &&
		    strcmp(w->rows[i].kind, kind) == 0 &&
		    strcmp(w->rows[i].sandbox, sandbox) == 0)
			return &w->rows[i];
	return NULL;
}

/* The row of all those that came when there were too many. */
static struct incident *others(struct incident_window *w, const struct incident *one)
{
	struct incident *row = find(w, one->kind, INCIDENT_OTHERS, "");

	if (row || w->count == INCIDENT_ROWS)
		return row;
	row = &w->rows[w->count++];
	*row = (struct incident){ .first_ms = one->last_ms };
	(void)!str_copy(row->kind, sizeof(row->kind), one->kind);
	(void)!str_copy(row->source, sizeof(row->source), INCIDENT_OTHERS);
	return row;
}

bool incident_add(struct incident_window *w, const struct incident *one)
{
	struct incident *row;
	size_t before;

	if (one->last_ms - w->since_ms >= INCIDENT_WINDOW_MS) {
		w->count = 0; /* what was not written by now was given up long ago */
		w->since_ms = one->last_ms;
	}
	before = w->count;
	row = find(w, one->kind, one->source, one->sandbox);
	if (!row && w->count < INCIDENT_SOURCES_MAX) {
		row = &w->rows[w->count++];
		*row = *one;
		row->first_ms = one->last_ms;
		row->count = 0;
	}
	if (!row)
		row = others(w, one);
	if (!row)
		return false;
	row->count++;
	row->last_ms = one->last_ms;
	memcpy(row->detail, one->detail, sizeof(row->detail));
	return w->count > before;
}

bool incident_take(struct incident_window *w, size_t i, struct incident *ret)
{
	if (i >= w->count || w->rows[i].count == 0)
		return false;
	*ret = w->rows[i];
	w->rows[i].count = 0;
	return true;
}

void incident_put_back(struct incident_window *w, const struct incident *taken)
{
	struct incident *row = find(w, taken->kind, taken->source, taken->sandbox);

	if (row)
		row->count += taken->count;
}

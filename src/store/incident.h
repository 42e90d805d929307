/* Refused requests, as they are kept: the newest STORE_INCIDENTS_MAX rows. */
#pragma once

#include "core/incident.h"
#include "store/store.h"

#define STORE_INCIDENTS_MAX 10000
#define STORE_INCIDENT_PAGE 1000

/* Added to the row of its hour, kind, source and sandbox. */
must_check int store_incident_add(struct store *s, const struct incident *one, struct err *e);
must_check int store_incident_trim(struct store *s, struct err *e);

/*
 * A page with smaller ids than `before` (0: from the newest on), newest first. Damaged rows are
 * left out: how many, and `e` names the first.
 */
typedef void incident_fn(uint64_t id, const struct incident *one, void *arg);
must_check int store_incident_list(struct store *s, uint64_t before, incident_fn *on_row,
				   void *arg, struct err *e);

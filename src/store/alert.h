/*
 * Alerts: what berth gave up on by itself, and a person should look at. One lasts
 * from when it is raised until what it is about has ended; a sandbox's end ends
 * all of its alerts, with the row, and a host's removal those of the host.
 */
#pragma once

#include "core/sandbox.h"
#include "store/store.h"

#define STORE_ALERTS_MAX 1000 /* of one call */

struct alert {
	uint64_t id;
	char kind[32]; /* "deletion_quarantined" */
	char sandbox[SANDBOX_ID_SIZE];
	char subject[64]; /* of the sandbox: a wrapper's name; "": the sandbox itself */
	char owner[SANDBOX_OWNER_SIZE];
	char host[SANDBOX_HOST_SIZE];
	char message[SANDBOX_REASON_SIZE];
	uint64_t raised_ms;
	uint64_t ended_ms; /* 0: it lasts */
};

/*
 * Sandbox, kind and subject say which it is; owner and host are the sandbox's. Raised
 * again while it lasts it changes nothing but the message. Raise it before the step that
 * gives up is written: a crash between the two may leave an alert too many, never one
 * too few.
 */
must_check int store_alert_raise(struct store *s, const struct alert *a, struct err *e);

/* Nothing happens if there is none. */
must_check int store_alert_end(struct store *s, const char *sandbox, const char *kind,
			       const char *subject, struct err *e);

/* The newest first, those before `before` (0: from the newest); with `ended` also what is over. */
struct alert_page {
	const char *owner; /* NULL: all */
	uint64_t before;
	uint32_t limit; /* 1 to STORE_ALERTS_MAX */
	bool ended;
};
typedef void alert_fn(const struct alert *a, void *arg);
/* Damaged rows are left out: how many, and `e` names the first. */
must_check int store_alert_list(struct store *s, const struct alert_page *page, alert_fn *on_row,
				void *arg, struct err *e);

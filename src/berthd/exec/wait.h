/* Until a command ends, says something, or its sandbox listens on a port; or the time is over. */
#pragma once

#include "berthd/journal/journal.h"
#include "berthd/runtime/caller.h"

#define WAIT_TEXT_MAX   256
#define WAIT_MAX_MS     (3600 * 1000)
#define WAIT_DEFAULT_MS 60000

enum wait_for {
	WAIT_FOR_EXIT,
	WAIT_FOR_LOG,
	WAIT_FOR_PORT,
	WAIT_FOR_COUNT
};

struct wait_ask {
	struct caller by;
	struct journal *journal; /* held as long as it takes */
	enum wait_for what;
	const char *text;    /* a text, or an expression between slashes: /ready|up/i */
	uint64_t port;       /* 1 to 65535 */
	uint64_t timeout_ms; /* WAIT_MAX_MS at most */
};

enum wait_end {
	WAIT_ENDED,
	WAIT_SAID,
	WAIT_LISTENS,
	WAIT_TIMED_OUT,
};

struct wait_result {
	bool ready; /* it is what was waited for */
	enum wait_end end;
	struct journal *journal; /* until done() returns */
};

/* What came first, or why that cannot be known; then the wait is over. */
typedef void (*wait_fn)(void *data, const struct wait_result *result, const struct err *why);

struct wait;

/* done() may be called from here already; *held is the wait until then. */
must_check int wait_begin(const struct wait_ask *ask, wait_fn done, void *data, void **held,
			  struct err *e);
void wait_cancel(struct wait *w); /* done() is not called */

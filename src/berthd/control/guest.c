#include "berthd/control/guest.h"

#include <stdio.h>
#include <stdlib.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "proto/frame.h"
#include "store/sandbox.h"

/* The event of the log; NULL: nothing a reader has to know. */
static const char *const events[GUEST_STATUS_COUNT] = {
	[GUEST_DIFFERS] = "guest_differs",
	[GUEST_INCOMPATIBLE] = "guest_incompatible",
};

struct recording {
	struct job job;
	struct reactor *reactor;
	struct sandbox sb;
	struct guest_versions seen;
	enum guest_status status;
	char reason[SANDBOX_REASON_SIZE];
	guest_fn *done;
	void *data;
};

struct guest_versions guest_seen(const struct node_observation *o)
{
	return (struct guest_versions){ .guest = o->protocol, .host = FRAME_VERSION };
}

static void say_reason(struct recording *n)
{
	char guest[GUEST_VERSION_SIZE], host[GUEST_VERSION_SIZE];

	snprintf(n->reason, sizeof(n->reason),
		 "its init speaks version %s of the protocol, and its host %s%s",
		 guest_version_text(n->seen.guest, guest), guest_version_text(n->seen.host, host),
		 n->status == GUEST_INCOMPATIBLE
			 ? ": only sleep and delete work until it was asleep"
			 : ": it is replaced when the sandbox sleeps and wakes");
}

static int write_versions(struct job *job, struct store *s, struct err *e)
{
	struct recording *n = container_of(job, struct recording, job);
	struct sandbox_guest guest = {
		.id = n->sb.id,
		.version = n->sb.version,
		.seen = n->seen,
		.event = events[n->status],
		.reason = n->reason,
	};

	return store_sandbox_guest(s, &guest, &n->sb, e);
}

static void on_versions_written(struct job *job)
{
	struct recording *n = container_of(job, struct recording, job);

	if (!job->failed) {
		sandbox_cache_put(n->reactor->berthd->sandboxes, &n->sb);
		if (events[n->status])
			log_event(LOG_WARN, "init of the sandbox is of another version", "sandbox",
				  n->sb.id, "why", n->reason, NULL);
	}
	n->done(n->data, &n->sb, job->failed ? &job->e : NULL);
	free(n);
}

void guest_record(struct reactor *r, const struct sandbox *sb, struct guest_versions seen,
		  guest_fn *done, void *data)
{
	struct recording *n = xcalloc(1, sizeof(*n));

	n->reactor = r;
	n->sb = *sb;
	n->seen = seen;
	n->status = guest_compare(seen.guest, seen.host);
	n->done = done;
	n->data = data;
	say_reason(n);
	job_submit(r, NULL, &n->job, write_versions, on_versions_written);
}

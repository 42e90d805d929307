/* A sandbox as the command line sees it: made and deleted. */
#pragma once

#include "cli/client.h"
#include "cli/interrupt.h"

#define SANDBOX_ID_SIZE 128

struct sandbox_options {
	const char *runtime;
	uint64_t memory, disk; /* bytes; 0: the server's default, as in all of them */
	uint64_t cpu_milli;
	uint64_t pids;
	uint64_t lifetime_ms;
	bool lasts; /* no end, whatever the server's own rule is */
	const char *name, *profile;
	struct strv labels;  /* NAME=VALUE */
	struct strv env;     /* NAME=VALUE: of every command in it */
	struct strv allow;   /* HOST or HOST:PORT,PORT */
	const char *network; /* a mode: open, none, allow */
};

/* clang-format off */
/* The rows for them: `record` has a member `sandbox`. */
#define SANDBOX_OPTIONS(record) \
	OPTION(OPTION_TEXT, record, sandbox.runtime, "runtime", 'r', "RUNTIME", \
	       "crun (trusted code) or runsc (gVisor)"), \
	OPTION(OPTION_TEXT, record, sandbox.profile, "profile", 0, "NAME", \
	       "where limits that are not given come from; see berth profile ls"), \
	OPTION(OPTION_SIZE, record, sandbox.memory, "memory", 'm', "SIZE", \
	       "memory limit: 512m, 2g"), \
	OPTION(OPTION_CPUS, record, sandbox.cpu_milli, "cpus", 'c', "N", "CPU limit: 2, 1.5"), \
	OPTION(OPTION_NUMBER, record, sandbox.pids, "pids", 0, "N", "most processes at once"), \
	OPTION(OPTION_SIZE, record, sandbox.disk, "disk", 0, "SIZE", "disk limit: 2g"), \
	OPTION(OPTION_TEXT, record, sandbox.name, "name", 'n', "NAME", \
	       "what the sandbox is called, and found by"), \
	OPTION(OPTION_LIST, record, sandbox.labels, "label", 'l', "NAME=VALUE", \
	       "a label of the sandbox"), \
	OPTION(OPTION_DURATION, record, sandbox.lifetime_ms, "lifetime", 0, "TIME", \
	       "delete the sandbox after this: 10m, 8h; without it, it stays"), \
	OPTION(OPTION_LIST, record, sandbox.allow, "allow", 0, "HOST[:PORT,...]", \
	       "let it reach this name; may be repeated, and without it nothing is reached"), \
	OPTION(OPTION_TEXT, record, sandbox.network, "network", 0, "MODE", \
	       "open: all that is public; none: nothing; allow: what --allow names")
/* clang-format on */

/*
 * A first interrupt lets it finish, so that its id is known; a second gives up. A server that is
 * killed meanwhile is asked again, and makes one. The reply's status is 200 if it was there.
 */
must_check int sandbox_create(const struct context *c, const char *image,
			      const struct sandbox_options *o, struct interrupt *stop,
			      struct client_reply *ret, struct err *e);

/*
 * Gone already is fine: the reply is its receipt, in `receipt` unless that is NULL. Says so if
 * the proof of absence is still missing.
 */
must_check int sandbox_delete(const struct context *c, const char *id, struct client_reply *receipt,
			      struct err *e);

/* The same, and a server that is away for a while is waited for. */
must_check int sandbox_delete_surely(const struct context *c, const char *id, struct err *e);

/* What a receipt says, in one line without its end. */
void sandbox_receipt_text(struct buf *out, const struct json *receipt);

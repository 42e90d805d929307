/*
 * Identity keys: by which sandbox a caller's session is found again.
 *
 * A key is deterministic, `{prefix}-{first 48 hex of SHA-256}`, and nothing
 * but a unique column that finds a row: class, host and profile are columns,
 * and knowing a key is no permission. A sandbox that is being deleted or has nothing left
 * holds its key no more: the next one of the same key takes its place, so that no other
 * key is needed to route around a bad one.
 *
 * The hashed text joins its parts with `__`. Parts that could be split in two
 * ways (`a__b` + `c`, `a` + `b__c`) are hashed in a form with lengths instead,
 * so that two tuples never share a text.
 */
#pragma once

#include "lib/err.h"

#define IDENTITY_KEY_LEN     52 /* prefix, '-', 48 hex: within a DNS label */
#define IDENTITY_KEY_SIZE    (IDENTITY_KEY_LEN + 1)
#define IDENTITY_PART_MAX    200 /* characters of org, user, bot, session */
#define IDENTITY_LEGACY_MAX  640
#define IDENTITY_LEGACY_SIZE (IDENTITY_LEGACY_MAX + 1)
#define IDENTITY_NAME_MAX    63

enum identity_kind {
	IDENTITY_NONE,
	IDENTITY_ORG,    /* org and user */
	IDENTITY_USR,    /* user without an org */
	IDENTITY_BOT,    /* org, user and bot */
	IDENTITY_UBT,    /* user and bot */
	IDENTITY_SES,    /* one agent session */
	IDENTITY_LEGACY, /* the joined text itself, from before keys were hashed */
	IDENTITY_KIND_COUNT
};

/* Who asks. A part that is NULL or empty is not there. */
struct identity {
	const char *org;
	const char *user;
	const char *bot;
	const char *session;
};

/* The key of the session's own sandbox, or of the one its user shares. */
must_check int identity_session_key(const struct identity *id, char out[IDENTITY_KEY_SIZE],
				    struct err *e);
must_check int identity_shared_key(const struct identity *id, char out[IDENTITY_KEY_SIZE],
				   struct err *e);

/* The `__` text a shared sandbox had as its id before; for looking up, never for new rows. */
must_check int identity_legacy_key(const struct identity *id, char out[IDENTITY_LEGACY_SIZE],
				   struct err *e);

/* What kind of key this is; ERR_INVALID if of none. Legacy keys are of shared sandboxes. */
must_check int identity_key_check(const char *key, enum identity_kind *ret, struct err *e);

/* A name a user gives: 1 to 63 of [A-Za-z0-9._-], no '-' at either end, none we keep. */
must_check int identity_name_check(const char *name, struct err *e);

/* A sandbox as all parts of Berth see it, what a user may ask of one, and its id. */
#pragma once

#include "core/guest.h"
#include "core/identity.h"
#include "core/image-name.h"
#include "core/lifecycle.h"
#include "core/limits.h"
#include "core/policy.h"
#include "core/stop.h"
#include "lib/err.h"
#include "lib/id.h"

#define SANDBOX_ID_SIZE      64 /* with the NUL */
#define SANDBOX_OWNER_SIZE   64
#define SANDBOX_RUNTIME_SIZE 16
#define SANDBOX_HOST_SIZE    64
#define SANDBOX_REASON_SIZE  200
#define SANDBOX_CELL_MAX     8 /* characters */
#define SANDBOX_NAME_SIZE    (IDENTITY_NAME_MAX + 1)
#define SANDBOX_LABELS_SIZE  2048 /* as JSON text */
#define SANDBOX_ENV_SIZE     8192
#define SANDBOX_CAP_SIZE     280

struct sandbox {
	char id[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char image[IMAGE_NAME_SIZE];
	char image_digest[IMAGE_DIGEST_SIZE];
	char runtime[SANDBOX_RUNTIME_SIZE];
	char host[SANDBOX_HOST_SIZE];
	uint64_t generation; /* of its allocation; verbs to the node carry it */
	enum sandbox_state state;
	struct limits limits;
	bool limits_pending; /* changed, and berth-node has not done it yet */
	uint64_t created_ms;
	uint64_t version;                 /* one more with every change of the record */
	char reason[SANDBOX_REASON_SIZE]; /* why it is in this state, if there is more to say */
	uint64_t read_ms;                 /* when the record was read, by the database's clock */
	struct stop stop;                 /* of its deletion; its last error is `reason` */

	char name[SANDBOX_NAME_SIZE];            /* empty: none; unique among its owner's */
	char identity_key[IDENTITY_LEGACY_SIZE]; /* the same */
	enum policy_isolation isolation;         /* open: it has no identity */
	char profile[POLICY_WORD_SIZE];
	char labels[SANDBOX_LABELS_SIZE]; /* {"k":"v"} */
	char env[SANDBOX_ENV_SIZE];       /* {"K":"v"}: of every command */
	uint64_t sleep_after_ms;          /* 0: never by itself */
	bool keep_alive;                  /* it never sleeps by itself */
	uint64_t expires_ms;              /* it is deleted then; 0: never */
	uint64_t last_used_ms;            /* coarse; see berthd/control/last-used.h */
	uint64_t busy_ms;                 /* since when it is, coarse; 0: it is not */
	uint64_t failed_ms;               /* when it failed last, woken since or not; 0: never */
	char failed_why[SANDBOX_REASON_SIZE];
	bool files_kept;             /* false: it failed, and nothing of it is left */
	char network_mode[8];        /* of its policy: "open" is to be seen */
	struct guest_versions guest; /* of its last start, as they were compared last */
};

/* What a create request may say. Start from SANDBOX_SPEC_DEFAULT, then check. */
struct sandbox_spec {
	char image[IMAGE_NAME_SIZE];
	char runtime[SANDBOX_RUNTIME_SIZE]; /* "crun", "runsc"; empty: the host's default */
	char host[SANDBOX_HOST_SIZE];       /* empty: any; decided before it is made */
	struct limits limits;               /* LIMIT_OPEN until its profile is known */
	char name[SANDBOX_NAME_SIZE];
	char labels[SANDBOX_LABELS_SIZE]; /* JSON, checked */
	char env[SANDBOX_ENV_SIZE];
	int64_t sleep_after_ms;
	int64_t lifetime_ms; /* from now; 0: no end */
	bool keep_alive;
	char profile[POLICY_WORD_SIZE];

	/* What follows from its identity; see berthd/control/create-spec.h. */
	char identity_key[IDENTITY_LEGACY_SIZE];
	enum policy_isolation isolation;
	char cap_subject[SANDBOX_CAP_SIZE]; /* whose cap it counts for; empty: no cap */
	int64_t cap;
};

#define SANDBOX_OPEN            INT64_MIN /* a number that was not said */

#define SANDBOX_SLEEP_MS_MIN    1000
#define SANDBOX_SLEEP_MS_MAX    2592000000 /* 30 days */

#define SANDBOX_LIFETIME_MS_MIN 1000
#define SANDBOX_LIFETIME_MS_MAX 31536000000 /* 365 days */

/* clang-format off */
#define SANDBOX_SPEC_DEFAULT ((struct sandbox_spec){ \
	.limits = limits_usual(), .labels = "{}", .env = "{}" })
/* clang-format on */

/* ERR_INVALID names the member and what it may be. Limits may still be open. */
must_check int sandbox_spec_check(const struct sandbox_spec *spec, struct err *e);

/* A name that cannot be taken for an id or an identity key. */
must_check int sandbox_name_check(const char *name, struct err *e);

/* Its name and identity are its own: of what is going, or has nothing left, they are free. */
bool sandbox_holds_name(const struct sandbox *sb);

/*
 * Why a sandbox that was ready has no processes, on a host that runs since `booted_ms` and saw,
 * or did not see, that the kernel killed them for memory.
 */
const char *sandbox_end_reason(const struct sandbox *sb, uint64_t booted_ms, bool by_memory);

/* What to say to a use of a sandbox that failed: why, what was lost, what to do. Returns -1. */
int sandbox_failed_error(const struct sandbox *sb, struct err *e);

/* By which a sandbox can be named in a path. */
enum sandbox_address {
	ADDRESS_NONE,
	ADDRESS_ID,
	ADDRESS_KEY,
	ADDRESS_NAME
};
must_check int sandbox_address_check(const char *text, enum sandbox_address *ret, struct err *e);

/* "crun" or "runsc". */
must_check int sandbox_runtime_check(const char *runtime, struct err *e);

must_check int sandbox_sleep_check(int64_t ms, struct err *e);
must_check int sandbox_lifetime_check(int64_t ms, struct err *e);

/* "sb_" cell "_" and ID_RANDOM_CHARS of [0-9a-v]; a cell is [a-z0-9]{1,8}. */
must_check int sandbox_id_check(const char *id, struct err *e);
must_check int sandbox_cell_check(const char *cell, struct err *e);

/* `cell` and `random` (ID_RANDOM_CHARS of id_random()) are already checked. */
void sandbox_id_make(char out[SANDBOX_ID_SIZE], const char *cell, const char *random);

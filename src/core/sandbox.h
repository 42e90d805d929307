/* A sandbox as everybody sees it, what a user may ask of one, and its id. */
#pragma once

#include "core/image-name.h"
#include "core/lifecycle.h"
#include "core/stop.h"
#include "lib/err.h"
#include "lib/id.h"

#define SANDBOX_ID_SIZE      64 /* with the NUL */
#define SANDBOX_OWNER_SIZE   64
#define SANDBOX_RUNTIME_SIZE 16
#define SANDBOX_HOST_SIZE    64
#define SANDBOX_REASON_SIZE  200
#define SANDBOX_CELL_MAX     8 /* characters */

struct sandbox {
	char id[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	char image[IMAGE_NAME_SIZE];
	char image_digest[IMAGE_DIGEST_SIZE];
	char runtime[SANDBOX_RUNTIME_SIZE];
	char host[SANDBOX_HOST_SIZE];
	uint64_t generation; /* of its allocation; verbs to the node carry it */
	enum sandbox_state state;
	int64_t memory_mb;
	int64_t cpu_milli;
	int64_t pids;
	int64_t disk_mb;
	uint64_t created_ms;
	uint64_t version;                 /* one more with every change of the record */
	char reason[SANDBOX_REASON_SIZE]; /* why it is in this state, if there is more to say */
	uint64_t read_ms;                 /* when the record was read, by the database's clock */
	struct stop stop;                 /* of its deletion; its last error is `reason` */
};

/* What a create request may say. Start from SANDBOX_SPEC_DEFAULT, then check. */
struct sandbox_spec {
	char image[IMAGE_NAME_SIZE];
	char runtime[SANDBOX_RUNTIME_SIZE]; /* "crun", "runsc"; empty: the host's default */
	char host[SANDBOX_HOST_SIZE];       /* empty: any; decided before it is made */
	int64_t memory_mb;
	int64_t cpu_milli;
	int64_t pids;
	int64_t disk_mb;
};

#define SANDBOX_MEMORY_MB_MIN 16
#define SANDBOX_MEMORY_MB_MAX 1048576 /* 1 TiB */
#define SANDBOX_CPU_MILLI_MIN 10
#define SANDBOX_CPU_MILLI_MAX 256000
#define SANDBOX_PIDS_MIN      8
#define SANDBOX_PIDS_MAX      65536
#define SANDBOX_DISK_MB_MIN   16
#define SANDBOX_DISK_MB_MAX   16777216 /* 16 TiB */

/* clang-format off */
#define SANDBOX_SPEC_DEFAULT ((struct sandbox_spec){ \
	.memory_mb = 512, .cpu_milli = 1000, .pids = 256, .disk_mb = 2048 })
/* clang-format on */

/* ERR_INVALID names the member and what it may be. */
must_check int sandbox_spec_check(const struct sandbox_spec *spec, struct err *e);

/* "crun" or "runsc". */
must_check int sandbox_runtime_check(const char *runtime, struct err *e);

/* "sb_" cell "_" and ID_RANDOM_CHARS of [0-9a-v]; a cell is [a-z0-9]{1,8}. */
must_check int sandbox_id_check(const char *id, struct err *e);
must_check int sandbox_cell_check(const char *cell, struct err *e);

/* `cell` and `random` (ID_RANDOM_CHARS of id_random()) are already checked. */
void sandbox_id_make(char out[SANDBOX_ID_SIZE], const char *cell, const char *random);

/*
 * The verbs of berth-node: everything berthd may ask of the privileged side.
 *
 * One message is one packet of a SOCK_SEQPACKET Unix socket, so nothing has to
 * be put together again. A request gets any number of NODE_PART messages with
 * the same id and then one NODE_REPLY or NODE_ERROR. Only `connect` (down) and
 * `image` (up) pass a descriptor.
 */
#pragma once

#include "proto/record.h"
#include "proto/router.h"

#define NODE_PACKET_MAX    (32 * 1024)
#define NODE_VERSION       2
#define NODE_NAME_SIZE     64 /* a sandbox id */
#define NODE_DIGEST_SIZE   80 /* sha256:... */
#define NODE_REQUEST_SIZE  96 /* the HTTP request this is done for */
#define NODE_RUNTIME_SIZE  16
#define NODE_REFERENCE_MAX 512
#define NODE_TRUST_SIZE    2048

enum node_verb {
	NODE_NONE,
	NODE_IMAGE,
	NODE_CREATE,
	NODE_START,
	NODE_OBSERVE,
	NODE_CONNECT,
	NODE_STOP,
	NODE_DESTROY,
	NODE_INVENTORY,
	NODE_CAPACITY,
	NODE_USAGE,
	NODE_LEASE,
	NODE_LIMIT,
	NODE_SYNC,
	NODE_GROUP,
	NODE_KILLED,
	NODE_PROCESSES,
	NODE_VERB_COUNT
};

enum node_kind {
	NODE_REQUEST,
	NODE_PART,  /* one of a list, or progress */
	NODE_REPLY, /* the end */
	NODE_ERROR, /* the other end */
	NODE_KIND_COUNT
};

/* What an observation can say. Unknown is an answer; it never becomes absent. */
enum presence {
	PRESENCE_UNKNOWN,
	PRESENCE_ABSENT,
	PRESENCE_PRESENT,
	PRESENCE_COUNT
};
const char *presence_name(enum presence p);

enum image_op {
	IMAGE_PULL,   /* `source` is a registry reference */
	IMAGE_IMPORT, /* a tar of a root filesystem comes as a descriptor */
	IMAGE_LIST,   /* parts: struct node_image */
	IMAGE_REMOVE, /* by digest */
	IMAGE_OP_COUNT
};

/* Which allocation of which sandbox. Every verb about one begins with it. */
struct node_target {
	char request[NODE_REQUEST_SIZE]; /* for the log */
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation;
	uint64_t epoch; /* of the host when it was decided; create and start need it to be this */
};

struct node_image_ask {
	char request[NODE_REQUEST_SIZE];
	uint32_t op; /* enum image_op */
	char source[NODE_REFERENCE_MAX];
	char digest[NODE_DIGEST_SIZE];
};

/* A part (progress) or the reply (done) of a pull or an import; a part of a list. */
struct node_image {
	char digest[NODE_DIGEST_SIZE];
	uint64_t bytes;
	char phase[16]; /* "pulling", "unpacking"; empty when done */
	uint64_t done;
	uint64_t total;
};

/* Those that berth-node and the kernel see to. */
struct node_limits {
	uint64_t memory_bytes;
	uint64_t disk_bytes;
	uint32_t cpu_milli;
	uint32_t pids;
	uint32_t open_files; /* of one process; 0: as many as the host has */
};

struct node_create {
	char request[NODE_REQUEST_SIZE];
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation;
	uint64_t epoch;
	char image[NODE_DIGEST_SIZE];
	char runtime[NODE_RUNTIME_SIZE];
	struct node_limits limits;
	/* a certificate the box is to trust, behind its hash; empty: none */
	char trust[NODE_TRUST_SIZE];
	uint32_t keep_disk; /* 1: it was stopped: the disk it had must be there, and stays */
};

/* limit: other ones than it was created with, from now on; those that stay are said again. */
struct node_limit {
	char request[NODE_REQUEST_SIZE];
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation, epoch;
	struct node_limits limits;
};

struct node_stop {
	char request[NODE_REQUEST_SIZE];
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation;
	uint64_t epoch;
	uint32_t grace_ms;
	uint32_t life; /* only this one; 0: whichever it is */
};

/*
 * What an allocation has used, as the kernel counted it, since it was made: also
 * in what it had before it was stopped and started again. `connect` tells what is
 * needed to say later what was used meanwhile: cpu_us and what was refused.
 */
struct node_usage {
	uint64_t since_ms; /* when it was made; 0: nothing is known */
	uint64_t cpu_us;
	uint64_t memory_bytes, memory_peak_bytes; /* with the page cache */
	uint64_t pids, pids_peak;
	uint64_t pids_refused; /* processes that were not allowed to begin */
	uint64_t disk_bytes;
	uint64_t oom_kills;
};

enum node_ended {
	ENDED_NOT,
	ENDED,          /* its first process is gone, whatever that left behind */
	ENDED_BY_MEMORY /* and the kernel had killed it, for memory: gVisor alone */
};

/* What the host saw, part by part; `presence` sums them up. */
struct node_observation {
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation;
	uint32_t presence; /* enum presence, as the others */
	uint32_t process;
	uint32_t cgroup;
	uint32_t disk;
	uint32_t runtime;  /* the engine's own record of it */
	uint32_t link;     /* its way into the router, and the permission to use it */
	uint32_t record;   /* berth-node's own, with bundle and socket; no part of the sum */
	uint32_t ready;    /* 1: init has answered */
	uint32_t ended;    /* enum node_ended */
	uint32_t life;     /* counts its starts; 0: not known */
	uint32_t protocol; /* that its init said in HELLO; 0: it did not */
	uint64_t observed_ms;
	char address[ROUTER_ADDRESS_SIZE]; /* of its slot, from create to destroy; else empty */
	char detail[200];                  /* what was unknown, or what is still there */
	struct node_usage used;            /* up to when its cgroup was removed last */
};

/*
 * inventory: a part for everything that is here. With `follow` there is no end:
 * a part without a sandbox says that the list is through, and from then on one
 * comes for every sandbox whose processes end by themselves.
 */
struct node_cursor {
	char request[NODE_REQUEST_SIZE];
	uint32_t follow;
};

struct node_capacity {
	uint32_t version;
	uint32_t cpus;
	uint64_t memory_total, memory_available;
	uint64_t disk_total, disk_available;
	uint32_t sandboxes;
	char cgroups[16]; /* "v2", "hybrid", "v1" */
	char runtimes[64];
	uint64_t cpu_us;           /* of all sandboxes together, also those that are gone */
	uint32_t pids, open_files; /* that one sandbox, and one of its processes, may have */
};

/*
 * lease: until when this host may let its sandboxes run. Times are CLOCK_BOOTTIME,
 * which both sides read from the same kernel: an answer that lay in a queue does
 * not become longer. Without a further word it freezes them at that time.
 */
enum lease_op {
	LEASE_ASK,     /* nothing changes */
	LEASE_HOLD,    /* they may run until then, under this epoch; what was frozen goes on */
	LEASE_FREEZE,  /* now */
	LEASE_KILL,    /* the epoch is another's: answered when nothing runs any more */
	LEASE_RELEASE, /* this host needs no lease: they may run for ever */
	LEASE_OP_COUNT
};

enum fence_state {
	FENCE_NONE, /* no lease was ever told of */
	FENCE_HELD,
	FENCE_FROZEN,
	FENCE_KILLING,
	FENCE_CLEAR, /* nothing runs, and nothing may until a newer epoch is told */
	FENCE_STATE_COUNT
};
const char *fence_state_name(enum fence_state s);

struct node_lease {
	char request[NODE_REQUEST_SIZE];
	uint32_t op; /* enum lease_op */
	uint64_t epoch;
	uint64_t until_ms;
};

struct node_fence {
	uint32_t state; /* enum fence_state */
	uint64_t epoch; /* 0: none */
	uint64_t until_ms;
	uint32_t runs;      /* enum presence: has any sandbox a process */
	uint32_t still;     /* enum presence: is all of it frozen */
	uint64_t frozen_ms; /* when that was seen; 0: it is not */
};

/* sync: all that was written before this time is counted in what sandboxes hold. */
struct node_synced {
	uint64_t at_ms; /* since 1970 */
};

/*
 * group: the cgroups of wrappers inside their sandbox's own. What is in one the kernel says,
 * and no process of the guest can leave it. ERR_UNSUPPORTED where the host does not see the
 * guest's processes (gVisor).
 */
enum group_op {
	GROUP_LOOK,   /* a part for every one there is */
	GROUP_ENTER,  /* make it, and move the process `pid` there, as its init counts pids */
	GROUP_KILL,   /* everything in it, until none is seen; the reply says what is left */
	GROUP_REMOVE, /* those without processes whose name begins with `name` */
	GROUP_OP_COUNT
};

#define NODE_GROUP_SIZE 64

struct node_group {
	char request[NODE_REQUEST_SIZE];
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation, epoch;
	uint32_t op; /* enum group_op */
	char name[NODE_GROUP_SIZE];
	uint32_t pid;
};

struct node_group_seen {
	char name[NODE_GROUP_SIZE];
	uint32_t process; /* enum presence: is any in it */
};

/*
 * killed: a process of the guest was ended by a SIGKILL, and its init keeps it until this is
 * answered; or init is gone. Was it the host's kernel, for memory? Unknown where its log cannot
 * be read, or the host does not see the guest's processes.
 */
struct node_killed {
	char request[NODE_REQUEST_SIZE];
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation, epoch;
	uint32_t pid;     /* as its init counts pids; 0: init itself */
	uint64_t boot_ms; /* by this clock it was not there before */
};

struct node_killer {
	uint32_t memory; /* enum presence */
};

/*
 * processes: what runs in a wrapper's cgroup, a part for each. With an engine that hides its guest
 * from the host (gVisor): what that says of the whole sandbox. What a guest has written in it is
 * cut, and otherwise as it was.
 */
#define NODE_PROCESSES_MAX 256
#define NODE_COMMAND_SIZE  512

struct node_process_ask {
	char request[NODE_REQUEST_SIZE];
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation, epoch;
	char group[NODE_GROUP_SIZE];
};

struct node_process {
	uint32_t pid;    /* as the guest counts, as the next */
	uint32_t parent; /* 0: none of those that are told */
	uint32_t state;  /* the kernel's letter; 0: not known */
	uint64_t memory_bytes;
	char command[NODE_COMMAND_SIZE]; /* its words, or in brackets its name */
};

struct node_processes {
	uint32_t total;  /* also those that were left out */
	uint32_t engine; /* 1: on its word, and of the whole sandbox */
};

struct node_nothing {
	uint32_t zero;
};

/* What a verb takes and gives; `part` is NULL where there are none. */
struct node_verb_row {
	const char *name;
	const struct field *request, *part, *reply;
	size_t request_size, part_size, reply_size;
};
const struct node_verb_row *node_verb_row(enum node_verb verb);

/* One packet: version, verb, kind, id, then the record its row names. */
struct node_head {
	enum node_verb verb;
	enum node_kind kind;
	uint64_t id;
	struct bytes body;
};

void node_encode(struct buf *out, enum node_verb verb, enum node_kind kind, uint64_t id,
		 const void *record);
void node_encode_error(struct buf *out, enum node_verb verb, uint64_t id, const struct err *why);
must_check int node_head_decode(struct bytes packet, struct node_head *ret, struct err *e);

/* Into the record that the row names for this verb and kind. */
must_check int node_body_decode(const struct node_head *h, void *record, struct err *e);
void node_error_decode(const struct node_head *h, struct err *ret);

/* The largest of all records: enough room for any body. */
union node_any {
	struct node_target target;
	struct node_image_ask image_ask;
	struct node_image image;
	struct node_create create;
	struct node_limit limit;
	struct node_stop stop;
	struct node_observation observation;
	struct node_cursor cursor;
	struct node_capacity capacity;
	struct node_usage usage;
	struct node_lease lease;
	struct node_fence fence;
	struct node_synced synced;
	struct node_group group;
	struct node_group_seen group_seen;
	struct node_killed killed;
	struct node_killer killer;
	struct node_process_ask process_ask;
	struct node_process process;
	struct node_processes processes;
	struct node_nothing nothing;
};

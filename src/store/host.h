/*
 * Hosts of this cell, their leases and epochs.
 *
 * A lease ends by the database's clock and by no other. An epoch only grows: its
 * host moves it when it begins anew with an empty house, and another host moves
 * it when it takes over one whose lease has been over for long enough. A host that
 * holds an older epoch has lost the right to run anything.
 */
#pragma once

#include "core/placement.h"
#include "core/sandbox.h"
#include "store/store.h"

#define HOST_VERSION_SIZE  32
#define HOST_ADDRESS_SIZE  128
#define HOST_BOOT_SIZE     40
#define HOST_RUNTIMES_SIZE 64
#define HOST_ARRIVALS_MAX  16 /* handed out at once */
#define HOST_LATE_MAX      64 /* told at once, the latest first */
#define HOST_SANDBOXES_MAX 10000

struct host_capacity {
	uint64_t cpus;
	uint64_t memory_mb, memory_free_mb;
	uint64_t disk_mb, disk_free_mb;
	char runtimes[HOST_RUNTIMES_SIZE];
	uint64_t open_files; /* of one process */
};

struct host {
	char id[SANDBOX_HOST_SIZE];
	char version[HOST_VERSION_SIZE];
	char address[HOST_ADDRESS_SIZE]; /* where its peers reach its API; "": nowhere */
	char boot_id[HOST_BOOT_SIZE];
	uint64_t epoch;          /* 0: it never had a lease */
	uint64_t lease_until_ms; /* 0: it has no lease, and needs none */
	uint64_t draining;
	uint64_t lost_ms;    /* when it was taken over; 0: it was not */
	uint64_t removed_ms; /* 0: it was not */
	char lost_to[SANDBOX_HOST_SIZE];
	struct host_capacity capacity;
	uint64_t sandboxes; /* records that name it, and what they were promised: */
	uint64_t promised_memory_mb, promised_disk_mb, promised_cpu_milli, promised_pids;
	uint64_t created_ms, seen_ms;
	uint64_t read_ms; /* the database's time of this row */
};

/* Whether it can run this; one that has not said yet what it has may. */
bool host_has_engine(const struct host_capacity *c, const char *runtime);

/* The most that one sandbox could have there, were it empty; for limits_fit(). */
struct limits host_most(const struct host_capacity *c);

/* How others see it. */
enum host_lease_state host_state(const struct host *h, unsigned divisor);

/*
 * A host says that it is there. One that needs a lease may do nothing until it has
 * one; one that needs none gives up what it had. ERR_CONFLICT if it was lost.
 */
must_check int store_host_put(struct store *s, const char *id, const char *version, bool leased,
			      struct err *e);

/* What a host says of itself with each of these two. */
struct host_claim {
	const char *id, *version, *boot_id;
	const char *address; /* NULL: as it was */
	uint64_t epoch;      /* renew: the one it holds */
	const struct host_capacity *capacity;
	unsigned divisor; /* of the lease, and of the margin */
};

/*
 * A new epoch for a host that was observed to run nothing of an older one.
 * ERR_CONFLICT while another machine holds a lease under this name.
 */
must_check int store_host_register(struct store *s, const struct host_claim *claim,
				   struct host *ret, struct err *e);

/*
 * The lease goes on from now, even if it was over: no host took it. Returns 1; or
 * 0 with the row as it is if the epoch is another by now, or the host was
 * removed. ERR_NOT_FOUND if it never was.
 */
must_check int store_host_renew(struct store *s, const struct host_claim *claim,
				struct host *ret, struct err *e);

typedef void host_fn(const struct host *h, void *arg);

must_check int store_host_get(struct store *s, const char *id, struct host *ret, struct err *e);
must_check int store_host_list(struct store *s, host_fn *on_row, void *arg, struct err *e);

/*
 * At most `limit` of those that take new sandboxes and have this image, in no
 * order: they live, are not draining, and can be reached (or are the one that asks).
 */
struct host_draw {
	const char *image; /* its name, or its digest */
	const char *self;
	const char *only; /* NULL or "": any */
	uint32_t limit;
	uint64_t lives_ms; /* only those whose lease lasts so long; 0: one that needs none, too */
};
must_check int store_hosts_draw(struct store *s, const struct host_draw *q, host_fn *on_row,
				void *arg, struct err *e);

/* How often what a host has may be promised; 0: promises of it are not counted. */
struct host_share {
	uint64_t memory, disk, cpu;
};

/* What it may promise as far as others know: it decides itself, when it is asked. */
struct placement_host host_room(const struct host *h, const struct host_share *share);

/* Whether it takes new sandboxes. ERR_NOT_FOUND, or ERR_CONFLICT for one that was removed. */
must_check int store_host_drain(struct store *s, const char *id, bool draining, struct host *ret,
				struct err *e);

/* A sandbox that changed its host. */
struct host_moved {
	char sandbox[SANDBOX_ID_SIZE];
	char host[SANDBOX_HOST_SIZE]; /* where it belongs now */
	uint64_t generation;
};
typedef void host_moved_fn(const struct host_moved *m, void *arg);

/* The host that takes over must hold a lease itself. */
struct host_taker {
	const char *id;
	uint64_t epoch;
	unsigned divisor;
};

/* A host whose lease should have been renewed by now; what is told of it is its row's word. */
struct host_late {
	char id[SANDBOX_HOST_SIZE];
	uint64_t epoch;
	uint64_t lease_until_ms;
};
typedef void host_late_fn(const struct host_late *h, void *arg);

must_check int store_hosts_late(struct store *s, const struct host_taker *by, host_late_fn *on_row,
				void *arg, struct err *e);

/*
 * It is lost from here on, to this taker: if its row is still as it was seen, and
 * its lease and the margin are over. 1, or 0 if not.
 */
must_check int store_host_take(struct store *s, const struct host_taker *by,
			       const struct host_late *seen, struct err *e);

/*
 * Up to `limit` sandboxes of one lost host get a new generation on hosts that
 * live, have their image and engine, and room for them: state creating and due
 * to be built. A sandbox with no such host waits, and so does one whose record cannot be
 * read: how many those are is returned, with the first one's error. Those being deleted, and
 * those that failed, stay: only their host can tell about them.
 */
struct host_replacement {
	struct host_share share;
	uint32_t limit;
};
must_check int store_hosts_replace(struct store *s, const struct host_taker *by,
				   const struct host_replacement *how, host_moved_fn *on_row,
				   void *arg, struct err *e);

/* Some of those that came to this host; each is handed out once. */
must_check int store_host_arrivals(struct store *s, const char *host, host_moved_fn *on_row,
				   void *arg, struct err *e);

/*
 * An operator says that this host will not come back. Only one that holds no
 * lease (ERR_CONFLICT), and with nothing that must still be replaced (ERR_BUSY).
 * What it was deleting, or kept of failed ones, ends with a tombstone whose
 * receipt says that it was not looked for, and which operator said so.
 */
struct host_removal {
	const char *id;
	const char *by;      /* whose word it is */
	const char *receipt; /* of each of its sandboxes */
	unsigned divisor;
};
must_check int store_host_remove(struct store *s, const struct host_removal *removal,
				 struct host *ret, struct err *e);

/*
 * berth-probe: what an attacker with root in a sandbox would try against the host.
 *
 * One row is one try. Each runs in a process of its own and does no harm when it gets through: it
 * opens and does not write, gives arguments that fail behind the check it is about, or touches
 * only what `berth doctor --attack` has laid out for it.
 */
#pragma once

#include "lib/base.h"

#define PROBE_NOTE_SIZE 200
#define PROBE_ADDRESSES 32
#define PROBE_TEXT_SIZE 128
#define PROBE_UNKNOWN   (-2)

/* What the host laid out to be found. Empty where it did not. */
struct target {
	bool gvisor; /* the engine is runsc */

	char token[PROBE_TEXT_SIZE];   /* a word of the host's and the neighbour's */
	char file[PROBE_TEXT_SIZE];    /* a file of the host that every user may read */
	char release[PROBE_TEXT_SIZE]; /* of the host's kernel */
	char ids[PROBE_TEXT_SIZE];     /* the neighbour's uid_map */
	char name[PROBE_TEXT_SIZE];    /* the host's own */

	/* Of the host and the neighbour. */
	char addresses[PROBE_ADDRESSES][PROBE_TEXT_SIZE];

	int pid;              /* of a process of the host */
	int port;             /* TCP and UDP, where the host and the neighbour listen */
	int api;              /* where berthd listens */
	int key;              /* of shared memory and a queue of the host's */
	int memory, disk;     /* the box's limits, in MiB, */
	int pids, files, cpu; /* and in thousandths */
	int leaked;           /* a descriptor we were started with besides 0, 1, 2; 0: none */
};

struct probe;

struct attempt {
	const struct target *target;
	const struct probe *probe;
	char note[PROBE_NOTE_SIZE]; /* what was seen; the error otherwise */
};

/* Whose outcome is an error number: any, or only those by which the kernel looked no further. */
enum judge {
	JUDGE_ANY,
	JUDGE_STRICT, /* an error other than EPERM, EACCES or ENOSYS comes from behind the check */
};

struct probe {
	const char *name;
	const char *stands_for; /* a class of attacks, or CVEs */
	const char *tries;
	/* >= 0: it got through; -1: errno says how it was held; PROBE_UNKNOWN: it was not tried */
	long (*run)(struct attempt *a);
	enum judge judge;
	const char *gvisor; /* why it is no way out if gVisor's own kernel lets it */
	bool slow;          /* waits for answers that should not come: all of these run at once */
	bool bomb;          /* goes for a limit of its box: one after the other, in a box for it */
	bool gvisor_only;   /* asks nothing of crun */
	long call;          /* without run(): this system call */
	long args[6];       /* of the call, or for run() */
	int (*take)(void);  /* one of what others need, too: tried from outside, see shared.c */
};

/* A program for packets or calls as the kernel takes it; musl has no header for it. */
struct filter_code {
	uint16_t code;
	uint8_t yes, no;
	uint32_t k;
};
struct filter {
	uint16_t len;
	const struct filter_code *code;
};
#define FILTER_RETURN 0x06 /* k */

/* Each room of probes; ended by a row without a name. */
extern const struct probe probe_calls[], probe_requests[], probe_families[], probe_mounts[],
	probe_kernel[], probe_paths[], probe_init[], probe_ids[], probe_others[], probe_net[],
	probe_bombs[], probe_shared[];

/* Fill in the note. Returns `verdict`. */
long probe_say(struct attempt *a, long verdict, const char *fmt, ...) printf_like(3, 4);
long probe_refused(int why); /* -1 with errno set */

/*
 * The journal of an exec as bytes of a file.
 *
 *   prelude  "BERTHJ2\n", u32 length of the head, u32 nothing
 *   slot     JOURNAL_SLOT bytes, the only part that is ever written again: how
 *            much there was in all, and in the end the one terminal record
 *   head     what was asked, by whom: never changes
 *   frames   what the command said, in the order we heard it
 *
 * A frame is u64 position (of its first byte among all bytes of both streams),
 * u64 monotonic time in us, u32 length, u8 stream (1 or 2), three zero bytes, and
 * the bytes themselves. A guest has a say in these bytes and in nothing else.
 */
#pragma once

#include "berthd/journal/exec-usage.h"
#include "core/sandbox.h"
#include "lib/time.h"
#include "proto/exec.h"

#define JOURNAL_PRELUDE  16
#define JOURNAL_SLOT     4480
#define JOURNAL_HEAD_AT  (JOURNAL_PRELUDE + JOURNAL_SLOT)
#define JOURNAL_HEAD_MAX (EXEC_BYTES_MAX * 2 + 65536)
#define JOURNAL_FRAME    24
#define JOURNAL_KEY_SIZE 65 /* a SHA-256 in hex, or empty */

enum journal_state {
	JOURNAL_RUNNING,
	JOURNAL_ENDED,   /* the terminal record stands */
	JOURNAL_SETTLED, /* and init was told so: it is not to be asked again */
	JOURNAL_STATE_COUNT
};

/* What was said of a wrapper's work: here, too, in case its lease could not be written. */
enum journal_work {
	JOURNAL_NO_WORK,
	JOURNAL_WORK_ACCEPTED,
	JOURNAL_WORK_SETTLED,
	JOURNAL_WORK_COUNT
};

enum journal_reboot {
	JOURNAL_REBOOT_UNKNOWN,
	JOURNAL_SAME_BOOT,
	JOURNAL_REBOOTED,
	JOURNAL_REBOOT_COUNT
};

struct journal_slot {
	enum journal_state state;
	uint32_t pid;
	struct exec_size size; /* of a terminal, as it is now */
	uint64_t ended_ms;     /* since 1970 */
	uint64_t offset[2];    /* bytes there were of each stream, also those beyond the cap */
	uint64_t recorded;     /* bytes of both that are in the frames */
	struct exec_exit exit;
	struct exec_usage use; /* of one that has ended */
	bool gone;             /* EXEC_WHOLE: it was seen that nothing of it is left */
	enum journal_work work;
	char boot_id[BOOT_ID_SIZE]; /* of the host when it began; empty: not known */
	enum journal_reboot reboot; /* EXEC_LOST: was the host started again by then? */
};

struct journal_head {
	char sandbox[SANDBOX_ID_SIZE];
	char owner[SANDBOX_OWNER_SIZE];
	uint64_t generation;
	uint64_t started_ms;
	uint64_t started_boot_ms; /* for its deadline: this clock never jumps */
	bool background;
	char group[EXEC_ID_SIZE];    /* or empty */
	char key[JOURNAL_KEY_SIZE];  /* of the Idempotency-Key */
	char body[JOURNAL_KEY_SIZE]; /* and of what came with it */
	struct exec_before before;
	bool walled;             /* its time limit is the sandbox's, and not the caller's */
	struct exec_request ask; /* its id is the exec's */
};

struct journal_frame {
	uint64_t position;
	uint64_t time_us;
	uint32_t len;
	int stream; /* 0: stdout, 1: stderr */
};

void journal_head_done(struct journal_head *h);

/* Prelude, slot and head: how a journal begins. */
void journal_begin_encode(struct buf *out, const struct journal_head *h,
			  const struct journal_slot *s);
void journal_slot_encode(struct buf *out, const struct journal_slot *s);
void journal_frame_encode(uint8_t to[JOURNAL_FRAME], const struct journal_frame *f);

/* How long the head is, from the prelude. */
must_check int journal_prelude_decode(struct bytes wire, uint32_t *head_len, struct err *e);
must_check int journal_slot_decode(struct bytes wire, struct journal_slot *ret, struct err *e);
must_check int journal_head_decode(struct bytes wire, struct journal_head *ret, struct err *e);

/* False if this is no frame that can stand at `position`. */
must_check bool journal_frame_decode(const uint8_t from[JOURNAL_FRAME], uint64_t position,
				     struct journal_frame *ret);

/*
 * The journal of an exec: a file outside the sandbox, STATE/journal/SANDBOX/EXEC,
 * to which everything the command says is appended before anybody hears it, and
 * the one terminal record. It is read while it grows, after berthd was restarted
 * and after the sandbox is gone.
 *
 * One thread appends; any may read. What is beyond the cap is counted, not kept.
 * Nothing waits for the disk: a machine that loses its power loses the sandbox, too.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "berthd/journal/journal-format.h"
#include "berthd/journal/tmpfile-pool.h"
#include "lib/err.h"

#define JOURNALS_BUCKETS 1024

struct reactor;
struct exec;

struct journals {
	pthread_mutex_t lock;
	int dir;
	struct tmpfile_pool spares;
	char boot_id[BOOT_ID_SIZE];                /* of the host as it runs now */
	uint64_t cap;                              /* of one exec's frames, in bytes */
	struct journal *buckets[JOURNALS_BUCKETS]; /* those that are held */
	uint64_t removed;                          /* so far: their files have such names */
	_Atomic uint64_t grown;                    /* bytes appended since they were trimmed */
	_Atomic uint64_t trims;                    /* how often they were */
};

struct journal {
	struct journals *all;
	struct journal_head head;
	int fd;
	uint64_t frames_at; /* where the first frame is in the file */

	pthread_mutex_t lock; /* of all that follows */
	struct journal_slot slot;
	uint64_t written;         /* where the next frame will be */
	struct err *refused;      /* why the command was never begun; NULL: it was, or may be */
	bool full;                /* no more is recorded: over the cap, or the disk is full */
	struct reactor *reactor;  /* whose loop `exec` lives on */
	struct exec *exec;        /* NULL: it is over, or no exec attached yet */
	_Atomic uint64_t over_at; /* the trim that found its owner past its share; 0: none */
	_Atomic size_t readers;   /* tails that read the file */
	_Atomic size_t viewers;   /* of a terminal */
	_Atomic uint32_t waiting; /* a bit for each reactor that wants to hear of more */
	_Atomic uint64_t changes; /* so often there was more, or an end */
	_Atomic uint64_t sign_ms; /* monotonic: the last sign of life, or when it was opened */

	size_t refs; /* under all->lock */
	struct journal *next;
};

/* What it looks like now, taken at one instant. */
struct journal_view {
	struct journal_slot slot;
	uint64_t written;
};

/* The part of it that changes while it runs, for those that look often. */
struct journal_glance {
	enum journal_state state;
	bool refused; /* see journal_refusal() */
	uint32_t pid;
	uint64_t offset[2], recorded, written;
};

must_check int journals_open(struct journals *js, const char *state_dir, uint64_t cap,
			     struct err *e);
void journals_close(struct journals *js);

/* `h` is taken over on success. ERR_CONFLICT if there is one of that name. The result is held. */
must_check int journal_create(struct journals *js, struct journal_head *h, struct journal **ret,
			      struct err *e);

/*
 * The one that is live, or what is on the disk. ERR_NOT_FOUND only if there is none: ERR_BUSY or
 * ERR_INTERNAL if it cannot be opened or read. The result is held.
 */
must_check int journal_find(struct journals *js, const char *sandbox, const char *id,
			    struct journal **ret, struct err *e);
struct journal *journal_ref(struct journal *j);
void journal_unref(struct journal *j);

void journal_look(struct journal *j, struct journal_view *ret);
void journal_glance(struct journal *j, struct journal_glance *ret);
uint64_t journal_view_end(const struct journal_view *v); /* the position behind everything */
/* The loop its exec lives on; NULL: it is over, or berthd has not taken it up again. */
must_check struct reactor *journal_loop(struct journal *j);

/*
 * Bytes of a stream, in whatever pieces of at most FRAME_PAYLOAD_MAX. Past the cap
 * they are only counted, and so are all that follow, unless the client is `late`
 * and must still be able to read them. False if they were not recorded.
 */
bool journal_append(struct journal *j, int stream, const void *data, size_t len, bool late);
must_check bool journal_is_full(struct journal *j);
must_check int journal_save(struct journal *j, struct err *e); /* the counts, if it is full */

/* A terminal's size, from any thread. */
void journal_resize(struct journal *j, const struct exec_size *size);

/* It was seen that nothing is left of it, from any thread. */
void journal_gone(struct journal *j);

/* What was said of its work, from any thread: before the lease is written. A sign of life. */
void journal_work(struct journal *j, enum journal_work work);

/* For how long there was no output, and nothing said of it. */
uint64_t journal_silent_ms(const struct journal *j);

/* What is still the only trace of something that may be alive: not to be removed. */
must_check bool journal_is_doubt(struct journal *j);

/*
 * The terminal record; `gone`: as in journal_gone(). If it cannot be written, the exec has not
 * ended for any reader. Then: init knows that it stands.
 */
must_check int journal_end(struct journal *j, const struct exec_exit *exit,
			   const struct exec_usage *use, bool gone, struct err *e);
void journal_settle(struct journal *j);

/* Before anything is appended again: count what the file holds, cut off what is half a frame. */
must_check int journal_recover(struct journal *j, struct err *e);

/* Remove its file; who holds it can still read. */
void journal_remove(struct journal *j);

/*
 * Its command was never begun: removed, and there will be no record. Those that follow it (the
 * same request, sent again) are told why.
 */
void journal_refuse(struct journal *j, const struct err *why);
void journal_refusal(struct journal *j, struct err *ret); /* of one that was */

/*
 * When berthd starts: a journal whose head never came to the disk is removed, and true. The
 * power was cut within seconds of its begin; a berthd that dies leaves whole heads behind.
 */
bool journal_remove_unwritten(struct journals *js, const char *sandbox, const char *id);

/* Every journal of a sandbox, or of all (NULL), on the disk. -1: stopped, or not all seen. */
typedef int (*journal_fn)(void *data, const char *sandbox, const char *id);
int journals_each(struct journals *js, const char *sandbox, journal_fn fn, void *data);

/* Those of a sandbox that are held now: all that run are. The callback may hold them, too. */
void journals_running(struct journals *js, const char *sandbox,
		      void (*fn)(void *data, struct journal *j), void *data);

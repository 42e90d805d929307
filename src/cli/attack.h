/*
 * The host attacked from its own sandboxes: `berth doctor --attack`. Everything goes through the
 * ordinary API; what is laid out on the host is canary.h's.
 */
#pragma once

#include "cli/canary.h"
#include "cli/client.h"
#include "cli/finding.h"
#include "cli/sandbox.h"
#include "lib/tar.h"

#define ATTACK_PROBE "/berth-probe"
#define ATTACK_LABEL "attack" /* with the canary's id, on every sandbox; images begin with both */

struct attack {
	const struct context *context;
	const char *runtime;
	const struct strv *only; /* probes; empty: all */
	struct interrupt *stop;
	struct canary canary;
	char image[64];
	char box[SANDBOX_ID_SIZE];       /* from which it is done */
	char neighbour[SANDBOX_ID_SIZE]; /* beside it */
	struct buf program;              /* berth-probe */
	struct findings found;
};

/* All probes, or those asked for, on one engine. `ret` is the caller's to findings_done(). */
must_check int attack_run(const struct context *c, const char *runtime, const struct strv *only,
			  struct interrupt *stop, struct findings *ret, struct err *e);

/*
 * The same on this engine or, if NULL, all of this host, told on standard output. The exit status:
 * 1 if something got through.
 */
must_check int attack_report(const struct context *c, const char *runtime,
			     const struct strv *only, struct err *e);

/* ---- the means: attack-box.c ---- */

struct attack_answer {
	char kind[16];
	int64_t exit_code;
	struct buf out;
};
void attack_answer_done(struct attack_answer *a);

bool attack_wants(const struct attack *a, const char *probe);
must_check int attack_create(struct attack *a, const char *image, const struct sandbox_options *o,
			     char id[SANDBOX_ID_SIZE], struct err *e);
void attack_delete(const struct attack *a, char id[SANDBOX_ID_SIZE]); /* "": nothing */

/* berth-probe with these words, in the working directory `cwd` (NULL: its own). */
must_check int attack_exec(const struct attack *a, const char *id, const char *cwd,
			   const struct strv *words, struct attack_answer *ret, struct err *e);
must_check int attack_start(const struct attack *a, const char *id, const struct strv *words,
			    struct err *e); /* and does not wait */

/* An entry of a tar; `bytes` of files, `target` of links. */
struct attack_entry {
	enum tar_type type;
	const char *path, *target;
	const void *bytes;
	size_t len;
};
void attack_tar(struct buf *out, const struct attack_entry *entries, size_t count);
must_check int attack_import(const struct attack *a, const char *name, const struct buf *tar,
			     struct err *e);
void attack_remove_image(const struct attack *a, const char *name);

/* What berth-probe says to these words, here on the host. */
must_check int attack_here(const char *const *words, struct buf *out, struct err *e);

/* One box takes all of something; its neighbour and the host must still get one. */
void attack_shared(struct attack *a, const struct strv *names);

/* ---- the probes through the API: attack-outside.c ---- */

void attack_expect_outside(struct attack *a); /* their rows */
must_check int attack_outside(struct attack *a, struct err *e);

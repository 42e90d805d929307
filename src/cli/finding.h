/* What came of each probe of `berth doctor --attack`. */
#pragma once

#include "lib/buf.h"
#include "lib/json.h"

enum verdict {
	VERDICT_UNKNOWN, /* the probe gave no answer, so it counts as through */
	VERDICT_HELD,
	VERDICT_OWN, /* it works, within gVisor's own kernel */
	VERDICT_THROUGH,
	VERDICTS
};

struct finding {
	char name[40], stands_for[120], tries[120];
	enum verdict verdict;
	char note[200];
};

struct findings {
	struct finding *items;
	size_t len;
};
void findings_done(struct findings *f);

/* A row that waits for its verdict. */
struct finding *findings_add(struct findings *f, const char *name, const char *stands_for,
			     const char *tries);
struct finding *findings_find(const struct findings *f, const char *name); /* or NULL */
size_t findings_through(const struct findings *f);

void finding_set(struct finding *f, enum verdict v, const char *fmt, ...) printf_like(3, 4);
enum verdict verdict_by_name(const char *name); /* VERDICT_UNKNOWN if it is none */

void findings_print(const struct findings *f, struct buf *out);
void findings_json(const struct findings *f, struct buf *out);

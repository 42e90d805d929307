/*
 * Labels and environment of a sandbox, as maps of "name=value", and selectors:
 * `k=v,k!=v,k`, all of which must hold. A label that is not there is not equal
 * to anything, so `k!=v` holds for it.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/strv.h"

#define LABELS_MAX      32
#define LABEL_KEY_MAX   63
#define LABEL_VALUE_MAX 255
#define ENV_MAX         50
#define ENV_KEY_MAX     128
#define ENV_VALUE_MAX   4096
#define SELECTOR_MAX    16 /* terms */

/* ERR_INVALID names what is wrong. */
must_check int labels_check(const struct strv *labels, struct err *e);
must_check int env_check(const struct strv *env, struct err *e);

/* What a list is asked for, in the shapes the store takes. */
struct selector {
	struct buf equal;   /* {"k":"v"} */
	struct buf unequal; /* [{"k":"v"}, ...] */
	struct buf keys;    /* {"k", ...}: an array in SQL's words */
	bool indexed;       /* something of it must be there */
};

must_check int selector_read(const char *text, struct selector *ret, struct err *e);
void selector_done(struct selector *s);

/*
 * What a create asks for, and which record that becomes: the one that is there
 * of this identity or name, or a new one. Who asks with an agent session gets
 * what was decided for it once; the policies are only asked before that.
 */
#pragma once

#include "api/life/change.h"
#include "api/request.h"

/* Members of the body that a number cannot leave open. */
#define INTENT_OPEN INT64_MIN

/* The body, checked as far as that is possible without the database. */
/* `*network` is the policy it asks for, the caller's to free; NULL: none. */
must_check int intent_read(const struct request *rq, struct sandbox_spec *spec,
			   struct intent_identity *who, char **network,
			   struct err *e);

/* On a worker: decide, find or insert. c->sb is the record; c->found: it was there before. */
must_check int intent_write(struct change *c, struct store *s, struct err *e);

/* Labels or variables as the record has them. */
must_check int intent_labels(const struct strv *labels, char out[SANDBOX_LABELS_SIZE],
			     struct err *e);
must_check int intent_env(const struct strv *env, char out[SANDBOX_ENV_SIZE], struct err *e);

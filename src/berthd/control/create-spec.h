/*
 * What a create asks for, and which record that becomes: the one that is there
 * of this identity or name, or a new one. Who asks with an agent session gets
 * what was decided for it once; the policies are only asked before that.
 */
#pragma once

#include "berthd/control/transition.h"

/*
 * On a worker: decide, find or insert. c->sb is the record; c->found: it was there before.
 * One that is there and has other options than were asked for is ERR_CONFLICT.
 */
must_check int create_spec_write(struct transition *c, struct store *s, struct err *e);

/* Labels or variables as the record has them. */
must_check int create_spec_labels(const struct strv *labels, char out[SANDBOX_LABELS_SIZE],
				  struct err *e);
must_check int create_spec_env(const struct strv *env, char out[SANDBOX_ENV_SIZE], struct err *e);

/*
 * The whole program: the state of every room, and the order in which rooms open and close.
 */
#pragma once

#include "berthd/runtime/berthd.h"

extern const struct setting berthd_settings_table[];

struct berthd *berthd_new(void);
must_check int berthd_open(struct berthd *b, struct err *e);
must_check int berthd_start(struct berthd *b, struct err *e); /* all loops but the first */
void berthd_run(struct berthd *b);                            /* that one, until SIGTERM */
void berthd_close(struct berthd *b);
void berthd_free(struct berthd *b);

/* The whole of berth-node: the state of every part, and the order in which they open and close. */
#pragma once

#include "node/node.h"

extern const struct setting node_settings_table[];

struct node *node_new(void);
must_check int node_open(struct node *n, struct err *e);
void node_close(struct node *n);
void node_free(struct node *n);

/* Find what an earlier berth-node left running, and watch it again. */
must_check int node_adopt(struct node *n, struct err *e);

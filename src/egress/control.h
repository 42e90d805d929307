/* berthd, which tells whose packets are whose and what may pass, and is told what was refused. */
#pragma once

#include "egress/egress.h"

must_check int control_open(struct egress *g, struct err *e);
void control_close(struct egress *g);

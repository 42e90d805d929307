/* DNS for sandboxes: addresses for allowed names only, and nothing is asked outside. */
#pragma once

#include "egress/egress.h"

/* False: no answer at all. */
bool nameserver_answer(struct egress *g, struct box *b, struct bytes message, struct buf *out);

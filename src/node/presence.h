/* What a look at the host says, and what several say together. The law is here, once. */
#pragma once

#include "proto/node.h"

/* Is there such a name? Only ENOENT is absence; whatever else went wrong is unknown. */
enum presence presence_at(int dirfd, const char *path);

/* One present is present; else one unknown is unknown; else absent. */
enum presence presence_sum(enum presence a, enum presence b);

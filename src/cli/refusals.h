/* What a sandbox was refused on the network: in the box it only looks like a broken name server. */
#pragma once

#include "cli/command.h"

/* Of a sandbox whose command failed, gone or not: one line each, the first few. */
void refusals_tell(const struct context *c, const char *id);

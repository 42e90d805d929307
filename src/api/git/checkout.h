/* POST /v1/sandboxes/{}/git/checkout: see docs/git.md. */
#pragma once

#include "api/request.h"

void git_checkout(struct request *rq);

/* POST /v1/sandboxes/{}/git/checkout: see docs/git.md. */
#pragma once

#include "berthd/front/request.h"

void git_checkout(struct request *rq);

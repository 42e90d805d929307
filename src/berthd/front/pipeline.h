/*
 * The way of a request: admit it, find its route, authenticate, resolve the name it gives, hand
 * it to the host that has the sandbox, collect its body, call the route's handler.
 */
#pragma once

#include "berthd/front/request.h"

void pipeline_begin(struct http_exchange *x);

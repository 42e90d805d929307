/*
 * Requests that were refused in a way an operator wants to know of: noticed where a request
 * ends, counted in memory, logged once an hour per kind and source, and written down every
 * two seconds.
 */
#pragma once

#include "berthd/front/request.h"

struct incidents;

struct incidents *incidents_begin(struct reactor *r);
void incidents_end(struct incidents *in);

/* From any reactor: an error that a request ends with. Most are nothing to note. */
void incidents_note(const struct request *rq, const struct err *e);

/*
 * What a client's first line says of its protocol. Where the requests are not to be seen, other
 * protocols pass as bytes; a request that could pass as one would name whatever host it likes.
 */
#pragma once

#include "lib/base.h"

#define FIRST_LINE_PART 4 /* "HTTP", and its slash is still to come */

enum look {
	LOOK_OTHER,
	LOOK_HTTP,
	LOOK_METHOD, /* so far: what is next decides */
	LOOK_LINE,   /* text of a first line that is not yet whole */
};

/* `begun`: these bytes are not the first of the line; all but FIRST_LINE_PART are looked at. */
enum look first_line_look(const char *data, size_t len, bool begun);

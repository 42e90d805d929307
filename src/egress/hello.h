/* The first message of a TLS client: which name it asks for. */
#pragma once

#include "proto/reader.h"

#define HELLO_NAME_SIZE 254
#define HELLO_MAX       (16 * 1024 + 5) /* one record */

enum hello {
	HELLO_BAD,  /* no ClientHello, or one that is cut into several records */
	HELLO_MORE, /* so far it is one */
	HELLO_READ, /* `name` is what it asks for; empty: it names none */
};

enum hello hello_read(struct bytes data, char name[HELLO_NAME_SIZE]);

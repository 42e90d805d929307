/* An address as a setting has it: "127.0.0.1:7070" or "[::1]:0", a number, not a name. */
#pragma once

#include <sys/socket.h>

#include "lib/err.h"

must_check int http_address(const char *text, struct sockaddr_storage *ret, struct err *e);

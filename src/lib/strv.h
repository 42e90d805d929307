/* A list of strings it owns, ended by NULL for execve(). */
#pragma once

#include "lib/base.h"

struct strv {
	char **items; /* NULL or NULL-terminated */
	size_t len;
};

void strv_done(struct strv *v);
void strv_add(struct strv *v, const char *s);
void strv_addf(struct strv *v, const char *fmt, ...) printf_like(2, 3);

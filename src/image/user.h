/* An image's USER ("web", "1000", "web:www", "1000:50"), in its own passwd and group files. */
#pragma once

#include "lib/err.h"
#include "proto/reader.h"
#include "proto/user-ids.h"

#define USER_HOME_SIZE 256

struct image_user {
	struct user_ids ids;
	char home[USER_HOME_SIZE]; /* "/" if the files say none */
};

/* The files are a stranger's bytes. A name must be in them; a number need not be. */
must_check int image_user_find(const char *user, struct bytes passwd, struct bytes group,
			       struct image_user *ret, struct err *e);

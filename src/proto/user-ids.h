/*
 * As whom commands run, in numbers: what an image's USER means in its own
 * /etc/passwd and /etc/group. berth-image finds it, berth-node hands it on, and
 * berth-init takes it, as a text: "1000:1000" or "1000:1000:27,100".
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"

#define USER_ID_MAX        65535 /* of those a sandbox has; see node/userns.h */
#define USER_GROUPS_MAX    32    /* besides its own */
#define USER_IDS_TEXT_SIZE 256

struct user_ids {
	uint32_t uid, gid;
	uint32_t groups[USER_GROUPS_MAX];
	size_t group_count;
};

void user_ids_text(const struct user_ids *ids, char to[USER_IDS_TEXT_SIZE]);
must_check int user_ids_parse(const char *text, struct user_ids *ret, struct err *e);

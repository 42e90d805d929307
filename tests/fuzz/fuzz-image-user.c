/* USER, /etc/passwd and /etc/group, a NUL between them. What is found can be told, and read. */
#include <stdlib.h>
#include <string.h>

#include "image/user.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct bytes take(const uint8_t **at, size_t *left)
{
	const uint8_t *end = *left > 0 ? memchr(*at, '\0', *left) : NULL;
	struct bytes part = { *at, end ? (size_t)(end - *at) : *left };
	size_t used = part.len + (end ? 1 : 0);

	*at += used;
	*left -= used;
	return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char user[200] = "", text[USER_IDS_TEXT_SIZE];
	struct bytes who = take(&data, &size), passwd = take(&data, &size);
	struct image_user found;
	struct user_ids again;
	struct err e;

	if (who.len > 0 && who.len < sizeof(user))
		memcpy(user, who.data, who.len);
	if (image_user_find(user, passwd, (struct bytes){ data, size }, &found, &e) < 0)
		return 0;
	user_ids_text(&found.ids, text);
	if (found.home[0] != '/' || user_ids_parse(text, &again, &e) < 0 ||
	    memcmp(&again, &found.ids, sizeof(again)) != 0)
		abort();
	return 0;
}

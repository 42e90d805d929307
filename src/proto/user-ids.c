#include "proto/user-ids.h"

#include <stdio.h>

#include "lib/buf.h"

void user_ids_text(const struct user_ids *ids, char to[USER_IDS_TEXT_SIZE])
{
	int len = snprintf(to, USER_IDS_TEXT_SIZE, "%u:%u", ids->uid, ids->gid);

	/* 34 ids of five digits and what separates them: there is room for all. */
	for (size_t i = 0; i < ids->group_count; i++)
		len += snprintf(to + len, USER_IDS_TEXT_SIZE - (size_t)len, "%c%u", i ? ',' : ':',
				ids->groups[i]);
}

/* The digits at *at, which must be there; *at is behind them afterwards. */
static bool take_id(const char **at, uint32_t *ret)
{
	const char *from = *at;
	uint32_t n = 0;

	while (**at >= '0' && **at <= '9' && n <= USER_ID_MAX)
		n = n * 10 + (uint32_t)(*(*at)++ - '0');
	*ret = n;
	return *at > from && n <= USER_ID_MAX;
}

static bool take(const char *at, struct user_ids *ids)
{
	if (!take_id(&at, &ids->uid) || *at++ != ':' || !take_id(&at, &ids->gid))
		return false;
	for (char before = ':'; *at; before = ',')
		if (ids->group_count == USER_GROUPS_MAX || *at++ != before ||
		    !take_id(&at, &ids->groups[ids->group_count++]))
			return false;
	return true;
}

int user_ids_parse(const char *text, struct user_ids *ret, struct err *e)
{
	*ret = (struct user_ids){ 0 };
	if (take(text, ret))
		return 0;
	return err_set(e, ERR_INVALID, "not the numbers of a user and its groups: \"%.60s\"", text);
}

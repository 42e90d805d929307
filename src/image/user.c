#include "image/user.h"

#include <string.h>

#include "lib/str.h"
#include "proto/image.h"

#define FIELDS_MAX 7 /* of a line: name:password:uid:gid:comment:home:shell */

enum passwd_field {
	PASSWD_NAME = 0,
	PASSWD_UID = 2,
	PASSWD_GID = 3,
	PASSWD_HOME = 5,
};

enum group_field {
	GROUP_NAME = 0,
	GROUP_GID = 2,
	GROUP_MEMBERS = 3,
};

struct line {
	struct bytes fields[FIELDS_MAX];
	size_t count;
};

/* What is before the first `end` of `rest`, which is behind it afterwards. */
static struct bytes take_until(struct bytes *rest, char end)
{
	const uint8_t *at = rest->len > 0 ? memchr(rest->data, end, rest->len) : NULL;
	struct bytes part = { rest->data, at ? (size_t)(at - rest->data) : rest->len };
	size_t used = part.len + (at ? 1 : 0);

	rest->data += used;
	rest->len -= used;
	return part;
}

/* False at the end of the file. */
static bool next_line(struct bytes *rest, struct line *ret)
{
	struct bytes text;

	if (rest->len == 0)
		return false;
	text = take_until(rest, '\n');
	for (ret->count = 0; ret->count < FIELDS_MAX && text.len > 0; ret->count++)
		ret->fields[ret->count] = take_until(&text, ':');
	return true;
}

static struct bytes field(const struct line *l, size_t i)
{
	return i < l->count ? l->fields[i] : (struct bytes){ (const uint8_t *)"", 0 };
}

static bool is_text(struct bytes b, const char *text)
{
	return b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
}

/* A whole number that a sandbox has as an id. */
static bool take_id(struct bytes b, uint32_t *ret)
{
	uint32_t n = 0;

	for (size_t i = 0; i < b.len; i++) {
		if (b.data[i] < '0' || b.data[i] > '9')
			return false;
		n = n * 10 + (uint32_t)(b.data[i] - '0');
		if (n > USER_ID_MAX)
			return false;
	}
	*ret = n;
	return b.len > 0;
}

static bool is_number(const char *text)
{
	return text[0] && text[strspn(text, "0123456789")] == '\0';
}

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

/* The first line that has this name, or this number as its id. */
static bool find_line(struct bytes file, const char *who, size_t id_field, struct line *ret)
{
	uint32_t want = 0, id = 0;
	bool by_id = take_id(bytes_of(who), &want);

	while (next_line(&file, ret))
		if (is_text(field(ret, PASSWD_NAME), who) ||
		    (by_id && take_id(field(ret, id_field), &id) && id == want))
			return true;
	return false;
}

static int no_such_id(const char *text, struct err *e)
{
	return err_set(e, ERR_INVALID,
		       "the image's USER has the id %.40s; those of a sandbox end at %d", text,
		       USER_ID_MAX);
}

/* By the passwd file, or the number as it is. The name is empty if there is none. */
static int find_user(const char *who, struct bytes passwd, struct image_user *ret,
		     struct bytes *name, struct err *e)
{
	struct line l;
	struct bytes home;

	*name = (struct bytes){ 0 };
	if (!find_line(passwd, who, PASSWD_UID, &l)) {
		if (!is_number(who))
			return err_set(e, ERR_INVALID,
				       "the image's USER is \"%.80s\", which its /etc/passwd does "
				       "not have: add it there, or use a number",
				       who);
		return take_id(bytes_of(who), &ret->ids.uid) ? 0 : no_such_id(who, e);
	}
	if (!take_id(field(&l, PASSWD_UID), &ret->ids.uid) ||
	    !take_id(field(&l, PASSWD_GID), &ret->ids.gid))
		return err_set(e, ERR_INVALID,
			       "the image's /etc/passwd gives its USER \"%.80s\" ids that are "
			       "not numbers up to %d",
			       who, USER_ID_MAX);
	*name = field(&l, PASSWD_NAME);
	home = field(&l, PASSWD_HOME);
	if (home.len > 0 && home.len < sizeof(ret->home) && home.data[0] == '/' &&
	    !memchr(home.data, '\0', home.len)) {
		memcpy(ret->home, home.data, home.len);
		ret->home[home.len] = '\0';
	}
	return 0;
}

static int find_group(const char *who, struct bytes group, uint32_t *ret, struct err *e)
{
	struct line l;

	if (find_line(group, who, GROUP_GID, &l) && take_id(field(&l, GROUP_GID), ret))
		return 0;
	if (!is_number(who))
		return err_set(e, ERR_INVALID,
			       "the image's USER has the group \"%.80s\", which its /etc/group "
			       "does not have: add it there, or use a number",
			       who);
	return take_id(bytes_of(who), ret) ? 0 : no_such_id(who, e);
}

static bool has_member(struct bytes members, struct bytes name)
{
	while (members.len > 0) {
		struct bytes one = take_until(&members, ',');

		if (one.len == name.len && memcmp(one.data, name.data, name.len) == 0)
			return true;
	}
	return false;
}

static int add_groups(struct bytes group, struct bytes name, struct user_ids *ids, struct err *e)
{
	struct line l;
	uint32_t gid = 0;

	while (next_line(&group, &l)) {
		if (!has_member(field(&l, GROUP_MEMBERS), name) ||
		    !take_id(field(&l, GROUP_GID), &gid) || gid == ids->gid)
			continue;
		if (ids->group_count == USER_GROUPS_MAX)
			return err_set(e, ERR_INVALID, "the image's USER is in more than %d groups",
				       USER_GROUPS_MAX);
		ids->groups[ids->group_count++] = gid;
	}
	return 0;
}

int image_user_find(const char *user, struct bytes passwd, struct bytes group,
		    struct image_user *ret, struct err *e)
{
	char who[IMAGE_USER_SIZE];
	struct bytes name;
	char *colon;

	*ret = (struct image_user){ .home = "/" };
	if (!str_copy(who, sizeof(who), user))
		return err_set(e, ERR_INVALID, "the image's USER is too long");
	colon = strchr(who, ':');
	if (colon)
		*colon = '\0';
	if (find_user(who, passwd, ret, &name, e) < 0)
		return -1;
	if (colon && colon[1]) /* a group that is named is the only one, as for other engines */
		return find_group(colon + 1, group, &ret->ids.gid, e);
	return name.len > 0 ? add_groups(group, name, &ret->ids, e) : 0;
}

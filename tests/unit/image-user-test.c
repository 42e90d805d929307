#include "image/user.h"

#include <stdio.h>
#include <string.h>

#include "lib/buf.h"
#include "test.h"

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "web:x:1000:50:Web server:/srv/web:/bin/sh\n"
			     "1001:x:7:8::/named-by-a-number:\n"
			     "far:x:70000:1::/far:\n"
			     "short:x:12\n"
			     "relative:x:13:13::home:\n"
			     "last:x:14:14::/last";
static const char group[] = "root:x:0:\nweb:x:50:web\naudio:x:29:other,web\nvideo:x:44:web\n"
			    "almost:x:45:webb,we\nfar:x:70000:web\n";

static struct bytes bytes_of(const char *text)
{
	return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

static const struct {
	const char *user, *ids, *home, *refused;
} cases[] = {
	{ "root", "0:0", "/root", NULL },
	{ "web", "1000:50:29,44", "/srv/web", NULL }, /* its own group is not there twice */
	{ "1000", "1000:50:29,44", "/srv/web", NULL },
	{ "web:", "1000:50:29,44", "/srv/web", NULL },
	{ "web:video", "1000:44", "/srv/web", NULL },
	{ "web:7", "1000:7", "/srv/web", NULL },
	{ "1234", "1234:0", "/", NULL }, /* a number needs no name */
	{ "1234:5678", "1234:5678", "/", NULL },
	{ "1001", "7:8", "/named-by-a-number", NULL },
	{ "65535:65535", "65535:65535", "/", NULL },
	{ "relative", "13:13", "/", NULL },
	{ "last", "14:14", "/last", NULL },
	{ "nobody", NULL, NULL, "\"nobody\", which its /etc/passwd does not have" },
	{ "we", NULL, NULL, "\"we\", which its /etc/passwd does not have" },
	{ "web:nogroup", NULL, NULL, "\"nogroup\", which its /etc/group does not have" },
	{ "65536", NULL, NULL, "those of a sandbox end at 65535" },
	{ "4294967296", NULL, NULL, "those of a sandbox end at 65535" },
	{ "web:65536", NULL, NULL, "those of a sandbox end at 65535" },
	{ "far", NULL, NULL, "ids that are not numbers up to 65535" },
	{ "short", NULL, NULL, "ids that are not numbers up to 65535" },
	{ "-1", NULL, NULL, "does not have" },
	{ ":50", NULL, NULL, "\"\", which its /etc/passwd does not have" },
};

TEST(a_user_is_what_the_images_own_files_say)
{
	for (size_t i = 0; i < array_len(cases); i++) {
		char text[USER_IDS_TEXT_SIZE];
		struct image_user u;
		struct err e = { 0 };
		int n = image_user_find(cases[i].user, bytes_of(passwd), bytes_of(group), &u, &e);

		if (cases[i].refused) {
			CHECK_INT(n, -1);
			CHECK_INT(e.code, ERR_INVALID);
			if (!strstr(e.msg, cases[i].refused))
				test_fail(__FILE__, __LINE__, "%s: \"%s\"", cases[i].user, e.msg);
			continue;
		}
		CHECK_OK(n, &e);
		user_ids_text(&u.ids, text);
		CHECK_STR(text, cases[i].ids);
		CHECK_STR(u.home, cases[i].home);
	}
}

TEST(without_the_files_only_numbers_are_known)
{
	struct bytes none = { (const uint8_t *)"", 0 };
	struct image_user u;
	struct err e;

	CHECK_OK(image_user_find("1000:1000", none, none, &u, &e), &e);
	CHECK_INT(u.ids.uid, 1000);
	CHECK_ERR(image_user_find("root", none, none, &u, &e), &e, ERR_INVALID);
}

TEST(a_user_in_more_groups_than_there_is_room_for_is_refused)
{
	for (int count = USER_GROUPS_MAX; count <= USER_GROUPS_MAX + 1; count++) {
		cleanup(buf_done) struct buf many = buf_make(65536);
		char text[USER_IDS_TEXT_SIZE];
		struct user_ids again;
		struct image_user u;
		struct err e;
		int n;

		for (int i = 0; i < count; i++)
			buf_addf(&many, "g%d:x:%d:web\n", i, 60000 + i);
		n = image_user_find("web", bytes_of(passwd), bytes_of(buf_str(&many)), &u, &e);
		if (count > USER_GROUPS_MAX) {
			CHECK_ERR(n, &e, ERR_INVALID);
			continue;
		}
		CHECK_OK(n, &e);
		CHECK_INT(u.ids.group_count, count);
		user_ids_text(&u.ids, text);
		CHECK_OK(user_ids_parse(text, &again, &e), &e);
		CHECK(memcmp(&again, &u.ids, sizeof(again)) == 0);
	}
}

TEST(ids_that_are_no_ids_are_refused)
{
	static const char *const bad[] = { "", "1", "1:", ":1", "1:1:", "1:1,2", "1:1:2,",
					   "1:1:2:3",
					   "65536:1", "1:65536", "1:1:65536", "-1:1", "1:1 ", "a:b",
					   "99999999999:1" };

	for (size_t i = 0; i < array_len(bad); i++) {
		struct user_ids ids;
		struct err e;

		CHECK_ERR(user_ids_parse(bad[i], &ids, &e), &e, ERR_INVALID);
	}
}

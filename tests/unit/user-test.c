#include "lib/user.h"

#include <string.h>

#include "test.h"

TEST(a_user_is_found_by_name_and_by_number)
{
	uid_t uid = 7;
	struct err e;

	CHECK_OK(user_find("root", "berthd", &uid, &e), &e);
	CHECK_INT(uid, 0);
	CHECK_OK(user_find("65533", "berthd", &uid, &e), &e);
	CHECK_INT(uid, 65533);
	CHECK_OK(user_find("4294967294", "berthd", &uid, &e), &e);
	CHECK_INT(uid, 4294967294);
}

TEST(what_is_no_user_is_refused_and_the_program_is_named)
{
	uid_t uid = 7;
	struct err e;

	CHECK(user_find("no-such-user", "berthd", &uid, &e) < 0);
	CHECK_STR(e.msg, "there is no user no-such-user");
	CHECK(strstr(err_remediation(&e), "the user berthd runs as"));
	CHECK(user_find("", "berthd", &uid, &e) < 0);
	CHECK_INT(uid, 7);
}

TEST(a_number_too_large_for_a_user_id_is_not_cut_to_root)
{
	uid_t uid = 7;
	struct err e;

	CHECK(user_find("4294967296", "berthd", &uid, &e) < 0);
	CHECK_INT(e.code, ERR_INVALID);
	CHECK(user_find("4294967295", "berthd", &uid, &e) < 0); /* to the kernel: no user */
	CHECK_INT(uid, 7);
}

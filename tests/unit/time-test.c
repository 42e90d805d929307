#include "lib/time.h"

#include <stdlib.h>

#include "test.h"

/* systemd says it without dashes: the same start of the machine has one id. */
TEST(a_boot_id_has_one_form)
{
	static const char id[] = "12345678-9abc-def0-1234-56789abcdef0";
	static const char *const same[] = {
		"12345678-9abc-def0-1234-56789abcdef0\n",
		"123456789abcdef0123456789abcdef0",
	};
	static const char *const wrong[] = {
		"",
		"123456789abcdef0123456789abcdef",
		"123456789abcdef0123456789abcdef01",
		"12345678-9abc-def0-1234-56789abcdef0x",
		"%b",
	};
	char got[BOOT_ID_SIZE] = "";
	struct err e;

	for (size_t i = 0; i < array_len(same); i++) {
		CHECK_OK(boot_id_parse(same[i], got, &e), &e);
		CHECK_STR(got, id);
	}
	for (size_t i = 0; i < array_len(wrong); i++)
		CHECK_ERR(boot_id_parse(wrong[i], got, &e), &e, ERR_INVALID);
}

TEST(a_service_that_does_not_see_it_is_told)
{
	char seen[BOOT_ID_SIZE] = "", told[BOOT_ID_SIZE] = "";
	struct err e;

	CHECK_OK(time_boot_id(seen, &e), &e);
	CHECK_INT(setenv("BERTH_BOOT_ID", "123456789abcdef0123456789abcdef0", 1), 0);
	CHECK_OK(time_boot_id(told, &e), &e);
	CHECK_STR(told, "12345678-9abc-def0-1234-56789abcdef0");
	CHECK_INT(unsetenv("BERTH_BOOT_ID"), 0);
}

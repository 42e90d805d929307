/* What an exec's id says about a wrapper, whoever wrote it. */
#include <string.h>

#include "core/wrapper.h"
#include "test.h"

TEST(an_id_tells_name_generation_and_instance)
{
	struct instance i = { (UINT64_C(1) << 62) - 1, "wi_0123456789abcdefghij" }, got;
	char id[WRAPPER_EXEC_SIZE];

	wrapper_exec_id(id, "sixteen-letters-", &i);
	CHECK_STR(id, "wr.sixteen-letters-.4611686018427387903.wi_0123456789abcdefghij");
	CHECK(wrapper_exec_is(id));
	CHECK(wrapper_exec_read(id, "sixteen-letters-", &got));
	CHECK(got.generation == i.generation);
	CHECK_STR(got.id, i.id);
	CHECK(!wrapper_exec_read(id, "sixteen-letters", &got));
	CHECK(!wrapper_exec_read(id, "main", &got));
}

/* Of the name, and not ours: it is present, and matches no lease. */
TEST(an_id_that_says_nothing_is_still_of_the_name)
{
	static const char *const ids[] = { "wr.main.", "wr.main.x.wi_a", "wr.main.7",
					   "wr.main.-1.wi_a",
					   "wr.main.99999999999999999999999.wi_a" };
	struct instance got;

	for (size_t i = 0; i < array_len(ids); i++) {
		CHECK(wrapper_exec_read(ids[i], "main", &got));
		CHECK(got.generation == 0 && !got.id[0]);
	}
	CHECK(!wrapper_exec_read("wr.mainly.1.wi_a", "main", &got));
	CHECK(!wrapper_exec_read("ex_wr.main.1.wi_a", "main", &got));
	CHECK(!wrapper_exec_is("ex_1"));
}

TEST(a_name_has_few_letters)
{
	static const char *const bad[] = { "", "a.b", "a b", "a/b", "seventeen-letters",
					   "\xc3\xa4" };
	struct err e;

	CHECK_OK(wrapper_name_check("Main_1-x", &e), &e);
	CHECK_OK(wrapper_name_check("sixteen-letters-", &e), &e);
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(wrapper_name_check(bad[i], &e), &e, ERR_INVALID);
}

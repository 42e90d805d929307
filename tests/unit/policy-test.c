#include "core/policy.h"

#include "test.h"

/* clang-format off */
static const struct policy everyone	= { 1, POLICY_GLOBAL, "*", POLICY_SHARED, "", "runsc" };
static const struct policy org_a	= { 2, POLICY_ORG, "A", POLICY_PER_SESSION, "", "" };
static const struct policy user_u	= { 3, POLICY_USER, "u", POLICY_SHARED, "big", "" };
static const struct policy one_session	= {
	4, POLICY_SESSION, "s", POLICY_PER_SESSION, "", "crun" };
static const struct policy any_user	= { 9, POLICY_USER, "*", POLICY_PER_SESSION, "tiny", "" };
static const struct policy org_a_newer	= { 12, POLICY_ORG, "A", POLICY_SHARED, "", "" };
/* clang-format on */

static void check_choice(const struct policy *rows, size_t n, struct policy_caller caller,
			 const char *want)
{
	struct policy_choice c = policy_choose(rows, n, &caller);
	char got[128];

	snprintf(got, sizeof(got), "%s %s %s by %llu", policy_isolation_name(c.isolation),
		 c.profile, c.runtime[0] ? c.runtime : "-", (unsigned long long)c.policy_id);
	CHECK_STR(got, want);
}

TEST(without_rows_everybody_has_a_sandbox_of_his_own)
{
	check_choice(NULL, 0, (struct policy_caller){ 0 }, "per_session small - by 0");
}

TEST(one_org_alone_can_be_decided)
{
	const struct policy rows[] = { { 5, POLICY_GLOBAL, "*", POLICY_SHARED, "", "" }, org_a };

	check_choice(rows, 2, (struct policy_caller){ "A", "u", "s" }, "per_session small - by 2");
	check_choice(rows, 2, (struct policy_caller){ "B", "u", "s" }, "shared standard - by 5");
}

/* ID-5 */
TEST(a_star_is_everyone_also_without_an_org)
{
	const struct policy rows[] = { { 6, POLICY_ORG, "*", POLICY_SHARED, "", "" } };

	check_choice(rows, 1, (struct policy_caller){ .user = "u" }, "shared standard - by 6");
	check_choice(rows, 1, (struct policy_caller){ "", "u", "s" }, "shared standard - by 6");
	check_choice(rows, 1, (struct policy_caller){ "A", "u", "s" }, "shared standard - by 6");
}

TEST(a_caller_without_an_org_is_no_org)
{
	struct policy odd = org_a;

	odd.subject[0] = '\0'; /* a row policy_check() refuses */
	check_choice(&odd, 1, (struct policy_caller){ "", "", "" }, "per_session small - by 0");
	check_choice(&org_a, 1, (struct policy_caller){ .user = "A" }, "per_session small - by 0");
}

TEST(precedence_does_not_depend_on_the_order_of_rows)
{
	struct policy rows[] = { everyone, org_a, user_u, one_session, any_user };
	size_t n = array_len(rows);

	for (size_t turn = 0; turn < n; turn++) {
		struct policy last = rows[0];

		check_choice(rows, n, (struct policy_caller){ "A", "u", "s" },
			     "per_session big crun by 4");
		check_choice(rows, n, (struct policy_caller){ "A", "u", "x" },
			     "shared big runsc by 3");
		check_choice(rows, n, (struct policy_caller){ "A", "x", "x" },
			     "per_session tiny runsc by 2");
		check_choice(rows, n, (struct policy_caller){ "B", "x", "x" },
			     "per_session tiny runsc by 9");
		memmove(rows, rows + 1, (n - 1) * sizeof(rows[0]));
		rows[n - 1] = last;
	}
}

TEST(of_two_rows_alike_the_newer_counts)
{
	const struct policy rows[] = { org_a_newer, org_a };

	check_choice(rows, 2, (struct policy_caller){ .org = "A" }, "shared standard - by 12");
}

TEST(a_row_that_says_nothing_is_refused)
{
	struct policy p = everyone;
	struct err e;

	CHECK_OK(policy_check(&p, &e), &e);
	p.subject[0] = 'x';
	CHECK_ERR(policy_check(&p, &e), &e, ERR_INVALID);
	p = org_a;
	p.isolation = POLICY_ISOLATION_OPEN;
	CHECK_ERR(policy_check(&p, &e), &e, ERR_INVALID);
	p = org_a;
	p.subject[0] = '\0';
	CHECK_ERR(policy_check(&p, &e), &e, ERR_INVALID);
}

TEST(every_name_comes_back)
{
	enum policy_scope scope = POLICY_GLOBAL;
	enum policy_isolation isolation = POLICY_SHARED;

	for (int s = 0; s < POLICY_SCOPE_COUNT; s++) {
		CHECK(policy_scope_by_name(policy_scope_name((enum policy_scope)s), &scope));
		CHECK_INT(scope, s);
	}
	for (int i = 0; i < POLICY_ISOLATION_COUNT; i++) {
		CHECK(policy_isolation_by_name(policy_isolation_name((enum policy_isolation)i),
					       &isolation));
		CHECK_INT(isolation, i);
	}
	CHECK(!policy_scope_by_name("team", &scope));
}

TEST(a_nearer_scope_goes_before_a_newer_row)
{
	const struct policy rows[] = { { 20, POLICY_ORG, "A", POLICY_SHARED, "", "" },
				       { 3, POLICY_USER, "u", POLICY_PER_SESSION, "", "" } };

	check_choice(rows, 2, (struct policy_caller){ "A", "u", "s" }, "per_session small - by 3");
}

TEST(each_thing_it_decides_is_enough)
{
	const struct policy rows[] = { { 1, POLICY_ORG, "A", POLICY_SHARED, "", "" },
				       { 1, POLICY_ORG, "A", POLICY_ISOLATION_OPEN, "b", "" },
				       { 1, POLICY_ORG, "A", POLICY_ISOLATION_OPEN, "", "c" } };
	struct policy nothing = { 1, POLICY_ORG, "A", POLICY_ISOLATION_OPEN, "", "" };
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++)
		CHECK_OK(policy_check(&rows[i], &e), &e);
	CHECK_ERR(policy_check(&nothing, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "this one nothing"));
	/* A profile of one letter decides as well as a long one. */
	check_choice(&rows[1], 1, (struct policy_caller){ .org = "A" }, "per_session b - by 0");
	check_choice(&rows[2], 1, (struct policy_caller){ .org = "A" }, "per_session small c by 0");
}

TEST(a_star_for_one_scope_is_no_global_one)
{
	struct policy p = { 1, POLICY_USER, "*", POLICY_SHARED, "", "" };
	struct err e;

	CHECK_OK(policy_check(&p, &e), &e);
	p.scope = POLICY_GLOBAL;
	CHECK_OK(policy_check(&p, &e), &e);
	memcpy(p.subject, "**", 3);
	CHECK_ERR(policy_check(&p, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "global"));
}

TEST(names_are_these)
{
	enum policy_isolation isolation = POLICY_SHARED;

	CHECK_STR(policy_scope_name(POLICY_GLOBAL), "global");
	CHECK_STR(policy_scope_name(POLICY_ORG), "org");
	CHECK_STR(policy_scope_name(POLICY_USER), "user");
	CHECK_STR(policy_scope_name(POLICY_SESSION), "session");
	CHECK_STR(policy_isolation_name(POLICY_ISOLATION_OPEN), "");
	CHECK_STR(policy_isolation_name(POLICY_PER_SESSION), "per_session");
	CHECK_STR(policy_isolation_name(POLICY_SHARED), "shared");
	CHECK(!policy_isolation_by_name("own", &isolation) && isolation == POLICY_SHARED);
}

#include "core/sandbox.h"

#include "core/limits.h"
#include "core/role.h"
#include "test.h"

#define RANDOM "0123456789abcdefghuv"

static struct sandbox_spec good(void)
{
	struct sandbox_spec spec = SANDBOX_SPEC_DEFAULT;

	snprintf(spec.image, sizeof(spec.image), "base:1");
	return spec;
}

TEST(the_defaults_are_a_good_spec)
{
	struct sandbox_spec spec = good();
	struct err e;

	CHECK_OK(sandbox_spec_check(&spec, &e), &e);
	CHECK_OK(limits_check(&spec.limits, false, &e), &e);
	CHECK_INT(spec.limits.of[LIMIT_MEMORY_MB], 512);
	CHECK_INT(spec.limits.of[LIMIT_CPU_MILLI], 1000);
	CHECK_INT(spec.limits.of[LIMIT_PIDS], 256);
	CHECK_INT(spec.limits.of[LIMIT_DISK_MB], 2048);
	CHECK_INT(spec.limits.of[LIMIT_ARTIFACT_MB], 200);
}

TEST(every_limit_is_held_at_both_ends)
{
	static const struct {
		enum limit limit;
		int64_t min, max;
		bool none;
		const char *says;
	} cases[LIMIT_COUNT] = {
		{ LIMIT_MEMORY_MB, 16, 1 << 20, false, "memory_mb must be" },
		{ LIMIT_CPU_MILLI, 10, 256000, false, "cpu_milli must be" },
		{ LIMIT_PIDS, 8, 65536, false, "pids must be" },
		{ LIMIT_DISK_MB, 16, 1 << 24, false, "disk_mb must be" },
		{ LIMIT_OPEN_FILES, 64, 1 << 20, false, "open_files must be" },
		{ LIMIT_CPU_MS, 100, 2592000000, true, "cpu_ms must be 0 (none), or" },
		{ LIMIT_WALL_MS, 100, 2592000000, true, "wall_ms must be 0 (none), or" },
		{ LIMIT_GRACE_MS, 1000, 2592000000, false, "grace_ms must be" },
		{ LIMIT_CONNECTIONS, 1, 1LL << 40, true, "connections must be 0 (none), or" },
		{ LIMIT_REQUESTS, 1, 1LL << 40, true, "requests must be 0 (none), or" },
		{ LIMIT_BYTES_OUT, 1, 1LL << 60, true, "bytes_out must be 0 (none), or" },
		{ LIMIT_ARTIFACT_MB, 1, 1 << 24, true, "artifact_mb must be 0 (none), or" },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct sandbox_spec spec = good();
		int64_t *member = &spec.limits.of[cases[i].limit];
		int64_t bad[] = { cases[i].min - 1, cases[i].max + 1, -1, INT64_MIN + 1, INT64_MAX,
				  0 };
		struct err e = { 0 };

		*member = cases[i].min;
		CHECK_OK(sandbox_spec_check(&spec, &e), &e);
		*member = cases[i].max;
		CHECK_OK(sandbox_spec_check(&spec, &e), &e);
		for (size_t k = 0; k < array_len(bad); k++) {
			*member = bad[k];
			if (bad[k] == 0 && cases[i].none)
				continue;
			CHECK_ERR(sandbox_spec_check(&spec, &e), &e, ERR_INVALID);
			CHECK(strstr(e.msg, cases[i].says));
		}
	}
}

TEST(what_is_not_said_is_as_usual)
{
	struct limits said = limits_open(), usual = limits_usual(), filled;
	struct err e;

	CHECK_OK(limits_check(&said, true, &e), &e);
	CHECK_ERR(limits_check(&said, false, &e), &e, ERR_INVALID);
	said.of[LIMIT_PIDS] = 9;
	said.of[LIMIT_WALL_MS] = 0; /* none is something that was said */
	usual.of[LIMIT_WALL_MS] = 5000;
	filled = limits_fill(&said, &usual);
	CHECK_INT(filled.of[LIMIT_PIDS], 9);
	CHECK_INT(filled.of[LIMIT_WALL_MS], 0);
	CHECK_INT(filled.of[LIMIT_MEMORY_MB], 512);
	CHECK_INT(limits_ms(&usual, LIMIT_WALL_MS, 1000), 5);
	CHECK_INT(limits_ms(&usual, LIMIT_WALL_MS, 100000), 1);
	CHECK_INT(limits_ms(&filled, LIMIT_WALL_MS, 1), 0);
}

TEST(a_host_whose_processes_may_open_few_files_gives_fewer)
{
	static const int64_t hosts[][2] = {
		{ 4096, 4096 }, { 0, 16384 }, { 1 << 20, 16384 }, { 9, 16384 }
	};

	for (size_t i = 0; i < array_len(hosts); i++) {
		struct limits host = { .of = { [LIMIT_OPEN_FILES] = hosts[i][0] } };

		CHECK_INT(limits_usual_on(&host).of[LIMIT_OPEN_FILES], hosts[i][1]);
		CHECK_INT(limits_usual_on(&host).of[LIMIT_MEMORY_MB], 512);
	}
}

TEST(more_than_a_host_has_is_named_with_both_numbers)
{
	struct limits asked = limits_open(), host = { .of = { [LIMIT_MEMORY_MB] = 24000 } };
	struct err e;

	CHECK_OK(limits_fit(&asked, &host, &e), &e); /* nothing said */
	asked.of[LIMIT_MEMORY_MB] = 24000;
	asked.of[LIMIT_CPU_MILLI] = 256000; /* not known of the host, or a ceiling */
	CHECK_OK(limits_fit(&asked, &host, &e), &e);
	asked.of[LIMIT_MEMORY_MB] = 24001;
	CHECK_ERR(limits_fit(&asked, &host, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "memory_mb: 24001 asked for") && strstr(e.msg, "24000 at most"));
}

TEST(image_and_runtime_are_checked_too)
{
	struct sandbox_spec spec = SANDBOX_SPEC_DEFAULT;
	struct err e;

	CHECK_ERR(sandbox_spec_check(&spec, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "image is missing"));
	spec = good();
	snprintf(spec.runtime, sizeof(spec.runtime), "runsc");
	CHECK_OK(sandbox_spec_check(&spec, &e), &e);
	snprintf(spec.runtime, sizeof(spec.runtime), "kata");
	CHECK_ERR(sandbox_spec_check(&spec, &e), &e, ERR_INVALID);
	CHECK_ERR(sandbox_runtime_check("", &e), &e, ERR_INVALID);
}

TEST(an_id_is_made_and_known_again)
{
	char id[SANDBOX_ID_SIZE], random[ID_RANDOM_CHARS + 1];
	struct err e;

	sandbox_id_make(id, "c1", RANDOM);
	CHECK_STR(id, "sb_c1_" RANDOM);
	CHECK_OK(sandbox_id_check(id, &e), &e);
	for (int i = 0; i < 100; i++) {
		id_random(random, ID_RANDOM_CHARS);
		sandbox_id_make(id, "abcdefg8", random);
		CHECK_OK(sandbox_id_check(id, &e), &e);
	}
}

TEST(what_is_no_id_goes_no_further)
{
	static const char *const bad[] = {
		"",
		"sb",
		"sb_",
		"sb__" RANDOM,
		"sb_c1",
		"sb_c1_",
		"sb_C1_" RANDOM,
		"sb_abcdefghi_" RANDOM,
		"sb_c1_" RANDOM "0",
		"sb_c1_0123456789abcdefghu",
		"sb_c1_0123456789abcdefghuw",
		"sb_c1_0123456789abcdefghu/",
		"sb_c1_../../../../../etc/pa",
		"xb_c1_" RANDOM,
		"sb_c1_" RANDOM "\n",
		"sb_c1_0123456789ABCDEFGHUV",
	};
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(sandbox_id_check(bad[i], &e), &e, ERR_INVALID);
}

TEST(a_cell_is_short_and_plain)
{
	struct err e;

	CHECK_OK(sandbox_cell_check("c1", &e), &e);
	CHECK_OK(sandbox_cell_check("abcdefg8", &e), &e);
	CHECK_ERR(sandbox_cell_check("", &e), &e, ERR_INVALID);
	CHECK_ERR(sandbox_cell_check("abcdefgh9", &e), &e, ERR_INVALID);
	CHECK_ERR(sandbox_cell_check("a_b", &e), &e, ERR_INVALID);
}

TEST(a_role_that_was_not_set_denies)
{
	for (int r = 0; r < ROLE_COUNT; r++) {
		CHECK(!role_allows((enum role)r, ROLE_UNSET));
		CHECK(!role_allows(ROLE_UNSET, (enum role)r));
		CHECK(role_name((enum role)r));
	}
	CHECK(role_allows(ROLE_ANYONE, ROLE_ANYONE));
	CHECK(role_allows(ROLE_ADMIN, ROLE_USER));
	CHECK(!role_allows(ROLE_USER, ROLE_ADMIN));
	CHECK(!role_allows(ROLE_ANYONE, ROLE_USER));
}

TEST(only_roles_of_keys_have_a_name_to_give)
{
	CHECK_INT(role_by_name("user"), ROLE_USER);
	CHECK_INT(role_by_name("admin"), ROLE_ADMIN);
	CHECK_INT(role_by_name("anyone"), ROLE_UNSET);
	CHECK_INT(role_by_name("unset"), ROLE_UNSET);
	CHECK_INT(role_by_name(""), ROLE_UNSET);
}

/* The row of each limit: its name, and what a sandbox has that nothing was said for. */
TEST(every_limit_has_its_name_and_its_usual)
{
	static const struct {
		const char *name;
		int64_t usual;
	} want[LIMIT_COUNT] = {
		[LIMIT_MEMORY_MB] = { "memory_mb", 512 },
		[LIMIT_CPU_MILLI] = { "cpu_milli", 1000 },
		[LIMIT_PIDS] = { "pids", 256 },
		[LIMIT_DISK_MB] = { "disk_mb", 2048 },
		[LIMIT_OPEN_FILES] = { "open_files", 16384 },
		[LIMIT_CPU_MS] = { "cpu_ms", 0 },
		[LIMIT_WALL_MS] = { "wall_ms", 0 },
		[LIMIT_GRACE_MS] = { "grace_ms", 60000 },
		[LIMIT_CONNECTIONS] = { "connections", 0 },
		[LIMIT_REQUESTS] = { "requests", 0 },
		[LIMIT_BYTES_OUT] = { "bytes_out", 0 },
		[LIMIT_ARTIFACT_MB] = { "artifact_mb", 200 },
	};
	struct limits usual = limits_usual(), none = limits_open();

	for (int i = 0; i < LIMIT_COUNT; i++) {
		CHECK_STR(limit_name((enum limit)i), want[i].name);
		CHECK_INT(usual.of[i], want[i].usual);
		CHECK(none.of[i] == LIMIT_OPEN);
	}
}

TEST(a_limit_that_is_refused_is_told_whole)
{
	struct limits l = limits_usual();
	struct err e;

	l.of[LIMIT_PIDS] = 7;
	CHECK_ERR(limits_check(&l, true, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "pids must be 8 to 65536, not 7");
	l = limits_usual();
	l.of[LIMIT_REQUESTS] = -1;
	CHECK_ERR(limits_check(&l, true, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "requests must be 0 (none), or 1 to 1099511627776, not -1");
}

TEST(a_time_limit_is_divided_and_never_lost)
{
	struct limits l = limits_usual();

	l.of[LIMIT_WALL_MS] = 1000;
	CHECK_INT(limits_ms(&l, LIMIT_WALL_MS, 0), 1000);
	CHECK_INT(limits_ms(&l, LIMIT_WALL_MS, 1), 1000);
	CHECK_INT(limits_ms(&l, LIMIT_WALL_MS, 2), 500);
	CHECK_INT(limits_ms(&l, LIMIT_WALL_MS, 1000), 1);
	CHECK_INT(limits_ms(&l, LIMIT_WALL_MS, 1001), 1);
	l.of[LIMIT_WALL_MS] = 1;
	CHECK_INT(limits_ms(&l, LIMIT_WALL_MS, 1), 1);
}

TEST(a_failed_sandbox_says_what_was_lost_and_what_to_do)
{
	struct sandbox sb = {
		.id = "sb_c1_x",
		.state = SANDBOX_FAILED,
		.files_kept = true,
		.last_used_ms = 1000,
	};
	struct err e;

	snprintf(sb.failed_why, sizeof(sb.failed_why), "%s", sandbox_end_reason(&sb, 1001, false));
	CHECK_ERR(sandbox_failed_error(&sb, &e), &e, ERR_CONFLICT);
	CHECK_STR(e.msg, "sandbox sb_c1_x failed: its host was restarted; its files are kept, what "
			 "ran in it is lost");
	CHECK(strstr(e.fix, "'berth wake sb_c1_x'"));
	CHECK(sandbox_holds_name(&sb));
	CHECK_STR(sandbox_end_reason(&sb, 1000, false), "its processes ended");
	CHECK_STR(sandbox_end_reason(&sb, 1001, true), "it ran out of memory (memory_mb)");
	sb.files_kept = false;
	CHECK_ERR(sandbox_failed_error(&sb, &e), &e, ERR_CONFLICT);
	CHECK(strstr(e.msg, "nothing of it was kept") && !strstr(e.fix, "wake"));
	CHECK(!sandbox_holds_name(&sb));
}

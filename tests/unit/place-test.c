#include "berthd/control/sandbox-cache.h"

#include <stdio.h>

#include "test.h"

static struct sandbox sandbox(const char *id, uint64_t generation)
{
	struct sandbox sb = { .generation = generation, .state = SANDBOX_READY };

	snprintf(sb.id, sizeof(sb.id), "%s", id);
	snprintf(sb.owner, sizeof(sb.owner), "owner-of-%s", id);
	return sb;
}

TEST(what_was_put_is_found_until_it_is_forgotten)
{
	static struct sandbox_cache p;
	struct sandbox a = sandbox("a", 1), b = sandbox("b", 2);
	struct cached_sandbox found;

	sandbox_cache_init(&p);
	sandbox_cache_put(&p, &a);
	sandbox_cache_put(&p, &b);
	CHECK(sandbox_cache_get(&p, "b", &found));
	CHECK_INT(found.generation, 2);
	CHECK_STR(found.owner, "owner-of-b");
	sandbox_cache_forget(&p, "b");
	CHECK(!sandbox_cache_get(&p, "b", &found));
	CHECK(sandbox_cache_get(&p, "a", &found));
	sandbox_cache_done(&p);
}

TEST(what_is_forgotten_keeps_its_use_until_that_is_written)
{
	static struct sandbox_cache p;
	struct sandbox a = sandbox("a", 1);
	struct cached_sandbox found;
	struct sandbox_used used[2];
	uint64_t last_ms, busy_ms;

	sandbox_cache_init(&p);
	sandbox_cache_put(&p, &a);
	sandbox_cache_use(&p, "a", 1000);
	sandbox_cache_forget(&p, "a");
	CHECK(!sandbox_cache_get(&p, "a", &found));
	CHECK_INT(sandbox_cache_take_used(&p, 1500, used, 2), 1);
	CHECK_STR(used[0].id, "a");
	CHECK_INT(used[0].ago_ms, 500);
	sandbox_cache_used(&p, "a", &last_ms, &busy_ms); /* it is being written */
	CHECK_INT(last_ms, 1000);
	CHECK_INT(p.count, 1);
	CHECK_INT(sandbox_cache_take_used(&p, 3500, used, 2), 0); /* it was written */
	CHECK_INT(p.count, 0);
	sandbox_cache_done(&p);
}

TEST(what_is_forgotten_and_busy_is_kept_until_it_is_not)
{
	static struct sandbox_cache p;
	struct sandbox a = sandbox("a", 1);
	struct sandbox_used used[2];

	sandbox_cache_init(&p);
	sandbox_cache_put(&p, &a);
	CHECK(sandbox_cache_busy(&p, "a", 1000, 1));
	sandbox_cache_forget(&p, "a");
	for (int i = 0; i < 3; i++)
		CHECK_INT(sandbox_cache_take_used(&p, 1500, used, 2), 1);
	CHECK(sandbox_cache_busy(&p, "a", 1600, -1));
	CHECK_INT(sandbox_cache_take_used(&p, 1700, used, 2), 1);
	CHECK_INT(used[0].busy_ago_ms, 0);
	CHECK_INT(sandbox_cache_take_used(&p, 3700, used, 2), 0);
	CHECK_INT(p.count, 0);
	sandbox_cache_done(&p);
}

TEST(a_later_put_takes_the_place_of_an_earlier_one)
{
	static struct sandbox_cache p;
	struct sandbox a = sandbox("a", 1);
	struct cached_sandbox found;

	sandbox_cache_init(&p);
	sandbox_cache_put(&p, &a);
	a.generation = 2;
	a.state = SANDBOX_DELETING;
	sandbox_cache_put(&p, &a);
	CHECK(sandbox_cache_get(&p, "a", &found));
	CHECK_INT(found.generation, 2);
	CHECK_INT(found.state, SANDBOX_DELETING);
	CHECK_INT(p.count, 1);
	sandbox_cache_done(&p);
}

TEST(an_oom_kill_is_told_once)
{
	static struct sandbox_cache p;
	struct sandbox a = sandbox("a", 1);

	sandbox_cache_init(&p);
	sandbox_cache_put(&p, &a);
	CHECK_INT(sandbox_cache_oom_told(&p, "a"), 0);
	/* none since it began, whatever there was before */
	CHECK(!sandbox_cache_oom(&p, "a", 0, 0));
	/* four that ran together and were killed together */
	for (int i = 0; i < 4; i++)
		CHECK(sandbox_cache_oom(&p, "a", 4, 0));
	CHECK(!sandbox_cache_oom(&p, "a", 4, 0)); /* a fifth beside them killed itself */
	CHECK_INT(sandbox_cache_oom_told(&p, "a"), 4);
	CHECK(!sandbox_cache_oom(&p, "a", 0, 4)); /* begun after them */
	CHECK(sandbox_cache_oom(&p, "a", 1, 4));
	CHECK(sandbox_cache_oom(&p, "unknown", 1, 0));
	CHECK(!sandbox_cache_oom(&p, "unknown", 0, 0));
	sandbox_cache_done(&p);
}

TEST(a_command_beside_code_is_not_alone)
{
	static struct sandbox_cache p;
	struct sandbox a = sandbox("a", 1);
	uint64_t begun;
	bool alone;

	sandbox_cache_init(&p);
	sandbox_cache_put(&p, &a);
	CHECK(sandbox_cache_busy(&p, "a", 1, 1));
	begun = sandbox_cache_begun(&p, "a", &alone);
	CHECK(alone);
	sandbox_cache_beside(&p, "a", 1); /* code that begins later shows in the count */
	CHECK(sandbox_cache_begun(&p, "a", &alone) > begun && !alone);
	sandbox_cache_beside(&p, "a", -1);
	(void)sandbox_cache_begun(&p, "a", &alone);
	CHECK(alone);
	sandbox_cache_done(&p);
}

TEST(memory_is_bounded)
{
	static struct sandbox_cache p;
	char id[32];

	sandbox_cache_init(&p);
	for (int i = 0; i < CACHE_MAX + 1000; i++) {
		struct sandbox sb;

		snprintf(id, sizeof(id), "s%d", i);
		sb = sandbox(id, 1);
		sandbox_cache_put(&p, &sb);
	}
	CHECK(p.count <= CACHE_MAX);
	sandbox_cache_done(&p);
}

TEST(a_full_table_forgets_only_what_is_idle)
{
	static struct sandbox_cache p;
	static struct sandbox_used used[CACHE_MAX];
	char id[32];

	sandbox_cache_init(&p);
	for (int i = 0; i < CACHE_MAX; i++) {
		struct sandbox sb;

		snprintf(id, sizeof(id), "s%d", i);
		sb = sandbox(id, 1);
		sandbox_cache_put(&p, &sb);
		if (i % 10 == 0)
			CHECK(sandbox_cache_busy(&p, id, 1000, 1));
		if (i % 10 == 1)
			sandbox_cache_use(&p, id, 1000);
	}
	for (int i = 0; i < CACHE_MAX / 2; i++) {
		struct sandbox sb;

		snprintf(id, sizeof(id), "more%d", i);
		sb = sandbox(id, 1);
		sandbox_cache_put(&p, &sb);
	}
	CHECK_INT(p.count, CACHE_MAX);
	for (int i = 0; i < CACHE_MAX; i += 10) {
		uint64_t last_ms, busy_ms;

		snprintf(id, sizeof(id), "s%d", i);
		sandbox_cache_used(&p, id, &last_ms, &busy_ms);
		CHECK_INT(busy_ms, 1000);
	}
	CHECK_INT(sandbox_cache_take_used(&p, 2000, used, CACHE_MAX), CACHE_MAX / 5);
	sandbox_cache_done(&p);
}

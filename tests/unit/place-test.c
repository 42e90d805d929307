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
	static struct places p;
	struct sandbox a = sandbox("a", 1), b = sandbox("b", 2);
	struct place found;

	places_init(&p);
	places_put(&p, &a);
	places_put(&p, &b);
	CHECK(places_get(&p, "b", &found));
	CHECK_INT(found.generation, 2);
	CHECK_STR(found.owner, "owner-of-b");
	places_forget(&p, "b");
	CHECK(!places_get(&p, "b", &found));
	CHECK(places_get(&p, "a", &found));
	places_done(&p);
}

TEST(a_later_put_takes_the_place_of_an_earlier_one)
{
	static struct places p;
	struct sandbox a = sandbox("a", 1);
	struct place found;

	places_init(&p);
	places_put(&p, &a);
	a.generation = 2;
	a.state = SANDBOX_DELETING;
	places_put(&p, &a);
	CHECK(places_get(&p, "a", &found));
	CHECK_INT(found.generation, 2);
	CHECK_INT(found.state, SANDBOX_DELETING);
	CHECK_INT(p.count, 1);
	places_done(&p);
}

TEST(an_oom_kill_is_told_once)
{
	static struct places p;
	struct sandbox a = sandbox("a", 1);

	places_init(&p);
	places_put(&p, &a);
	CHECK_INT(places_oom_told(&p, "a"), 0);
	CHECK(!places_oom(&p, "a", 0, 0)); /* none since it began, whatever there was before */
	for (int i = 0; i < 4; i++)        /* four that ran together and were killed together */
		CHECK(places_oom(&p, "a", 4, 0));
	CHECK(!places_oom(&p, "a", 4, 0)); /* a fifth beside them killed itself */
	CHECK_INT(places_oom_told(&p, "a"), 4);
	CHECK(!places_oom(&p, "a", 0, 4)); /* begun after them */
	CHECK(places_oom(&p, "a", 1, 4));
	CHECK(places_oom(&p, "unknown", 1, 0));
	CHECK(!places_oom(&p, "unknown", 0, 0));
	places_done(&p);
}

TEST(a_command_beside_code_is_not_alone)
{
	static struct places p;
	struct sandbox a = sandbox("a", 1);
	uint64_t begun;
	bool alone;

	places_init(&p);
	places_put(&p, &a);
	CHECK(places_busy(&p, "a", 1, 1));
	begun = places_begun(&p, "a", &alone);
	CHECK(alone);
	places_beside(&p, "a", 1); /* code that begins later shows in the count */
	CHECK(places_begun(&p, "a", &alone) > begun && !alone);
	places_beside(&p, "a", -1);
	(void)places_begun(&p, "a", &alone);
	CHECK(alone);
	places_done(&p);
}

TEST(memory_is_bounded)
{
	static struct places p;
	char id[32];

	places_init(&p);
	for (int i = 0; i < PLACES_MAX + 1000; i++) {
		struct sandbox sb;

		snprintf(id, sizeof(id), "s%d", i);
		sb = sandbox(id, 1);
		places_put(&p, &sb);
	}
	CHECK(p.count <= PLACES_MAX);
	places_done(&p);
}

TEST(a_full_table_forgets_only_what_is_idle)
{
	static struct places p;
	static struct sandbox_used used[PLACES_MAX];
	char id[32];

	places_init(&p);
	for (int i = 0; i < PLACES_MAX; i++) {
		struct sandbox sb;

		snprintf(id, sizeof(id), "s%d", i);
		sb = sandbox(id, 1);
		places_put(&p, &sb);
		if (i % 10 == 0)
			CHECK(places_busy(&p, id, 1000, 1));
		if (i % 10 == 1)
			places_use(&p, id, 1000);
	}
	for (int i = 0; i < PLACES_MAX / 2; i++) {
		struct sandbox sb;

		snprintf(id, sizeof(id), "more%d", i);
		sb = sandbox(id, 1);
		places_put(&p, &sb);
	}
	CHECK_INT(p.count, PLACES_MAX);
	for (int i = 0; i < PLACES_MAX; i += 10) {
		uint64_t last_ms, busy_ms;

		snprintf(id, sizeof(id), "s%d", i);
		places_used(&p, id, &last_ms, &busy_ms);
		CHECK_INT(busy_ms, 1000);
	}
	CHECK_INT(places_take_used(&p, 2000, used, PLACES_MAX), PLACES_MAX / 5);
	places_done(&p);
}

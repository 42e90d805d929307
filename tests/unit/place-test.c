#include "api/life/place.h"

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

TEST(an_oom_kill_is_ours_only_if_the_count_before_is_known)
{
	static struct places p;
	struct sandbox a = sandbox("a", 1);

	places_init(&p);
	places_put(&p, &a);
	CHECK(!places_oom(&p, "a", 3)); /* they may be of before we looked */
	CHECK(!places_oom(&p, "a", 3));
	CHECK(places_oom(&p, "a", 4));
	CHECK(!places_oom(&p, "unknown", 9));
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

#include "core/incident.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

static struct incident made(const char *kind, const char *source, const char *sandbox,
			    uint64_t at_ms)
{
	struct incident one = { .last_ms = at_ms };

	snprintf(one.kind, sizeof(one.kind), "%s", kind);
	snprintf(one.source, sizeof(one.source), "%s", source);
	snprintf(one.sandbox, sizeof(one.sandbox), "%s", sandbox);
	snprintf(one.detail, sizeof(one.detail), "at %llu", (unsigned long long)at_ms);
	return one;
}

static bool add(struct incident_window *w, const char *kind, const char *source,
		const char *sandbox, uint64_t at_ms)
{
	struct incident one = made(kind, source, sandbox, at_ms);

	return incident_add(w, &one);
}

TEST(only_some_errors_are_incidents)
{
	struct err e;

	err_set(&e, ERR_UNAUTHENTICATED, "no");
	CHECK(!incident_kind(&e));
	err_reason(&e, "no_space", 0);
	CHECK(!incident_kind(&e));
	err_reason(&e, REASON_BAD_KEY, 0);
	CHECK_STR(incident_kind(&e), "bad_key");
}

TEST(the_same_again_is_counted_and_told_once)
{
	struct incident_window *w = xcalloc(1, sizeof(*w));
	struct incident got;

	CHECK(add(w, "bad_key", "10.0.0.1", "", 5000));
	CHECK(!add(w, "bad_key", "10.0.0.1", "", 6000));
	CHECK(add(w, "bad_key", "10.0.0.1", "sb_c1_x", 6000));
	CHECK(add(w, "bad_key", "10.0.0.2", "", 6000));
	CHECK(add(w, "path_escape", "10.0.0.1", "", 6000));
	CHECK_INT(w->count, 4);
	CHECK(incident_take(w, 0, &got));
	CHECK(got.count == 2 && got.first_ms == 5000 && got.last_ms == 6000);
	CHECK_STR(got.detail, "at 6000");
	CHECK(!incident_take(w, 0, &got));
	incident_put_back(w, &got);
	CHECK(!add(w, "bad_key", "10.0.0.1", "", 7000)); /* written, and still not told again */
	CHECK(incident_take(w, 0, &got) && got.count == 3);
	CHECK(!incident_take(w, w->count, &got));
	free(w);
}

TEST(a_window_ends_and_everything_is_told_again)
{
	struct incident_window *w = xcalloc(1, sizeof(*w));

	CHECK(add(w, "bad_key", "10.0.0.1", "", INCIDENT_WINDOW_MS));
	CHECK(!add(w, "bad_key", "10.0.0.1", "", 2 * INCIDENT_WINDOW_MS - 1));
	CHECK(add(w, "bad_key", "10.0.0.1", "", 2 * INCIDENT_WINDOW_MS));
	CHECK_INT(w->count, 1);
	free(w);
}

TEST(a_million_sources_take_no_more_than_the_most)
{
	struct incident_window *w = xcalloc(1, sizeof(*w));
	char source[32];
	uint64_t all = 0;

	for (int i = 0; i < 100000; i++) {
		snprintf(source, sizeof(source), "10.%d.%d.%d", i >> 16, i >> 8 & 255, i & 255);
		(void)add(w, i % 2 ? "bad_key" : "forged_pass", source, "", 5000);
	}
	CHECK_INT(w->count, INCIDENT_SOURCES_MAX + 2);
	for (size_t i = 0; i < w->count; i++)
		all += w->rows[i].count;
	CHECK_INT(all, 100000);
	CHECK_STR(w->rows[w->count - 1].source, INCIDENT_OTHERS);
	free(w);
}

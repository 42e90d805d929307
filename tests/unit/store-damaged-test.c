/* Rows whose ids were damaged in a real PostgreSQL: told, never handed out, and in no one's way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store-world.h"
#include "store/alert.h"
#include "store/incident.h"
#include "store/network.h"
#include "store/policy.h"
#include "store/usage.h"
#include "test.h"

#define ROWS      6
#define PAGE      5
#define GOOD      (ROWS - 2)
#define ID_FORMAT "'sb_c1_' || lpad(i::text, 20, '0')"
#define NUMBERS   " FROM generate_series(1, 6) i"

/* Ids that were read. */
struct ids {
	int count;
	char of[ROWS + 1][SANDBOX_ID_SIZE];
};

static void see(struct ids *ids, const char *id)
{
	CHECK(ids->count < (int)array_len(ids->of));
	snprintf(ids->of[ids->count++], SANDBOX_ID_SIZE, "%s", id);
}

static void see_alert(const struct alert *a, void *arg)
{
	see(arg, a->sandbox);
}

static void see_usage(const struct usage *u, void *arg)
{
	see(arg, u->sandbox);
}

static void see_incident(uint64_t id, const struct incident *one, void *arg)
{
	(void)id;
	see(arg, one->sandbox);
}

static void see_policy(const char *sandbox, uint64_t version, void *arg)
{
	(void)version;
	see(arg, sandbox);
}

static int alerts(struct store *s, struct ids *ids, struct err *e)
{
	return store_alert_list(s, &(struct alert_page){ .limit = PAGE }, see_alert, ids, e);
}

static int usages(struct store *s, struct ids *ids, struct err *e)
{
	struct usage_page page = { .after = "", .limit = PAGE };

	return store_usage_list(s, &page, see_usage, ids, e);
}

static int incidents(struct store *s, struct ids *ids, struct err *e)
{
	return store_incident_list(s, 0, see_incident, ids, e);
}

static int policies(struct store *s, struct ids *ids, struct err *e)
{
	return store_network_versions(s, "h1", "", see_policy, ids, e);
}

/* A table with six rows; the ids of the second and of the third are to be damaged. */
/* clang-format off */
static const struct {
	const char *table;
	int (*list)(struct store *s, struct ids *ids, struct err *e);
	const char *fill;
} lists[] = {
	{ "alert", alerts,
		"INSERT INTO alert (kind, sandbox_id, subject, owner, host, message) "
		"SELECT 'k', " ID_FORMAT ", '', 'ann', 'h1', 'm'" NUMBERS },
	{ "usage", usages,
		"INSERT INTO usage (sandbox_id, since_ms, owner, host, profile, cpu_us, "
		"memory_peak_bytes, memory_sum_mb, memory_looks, disk_peak_bytes, pids_peak, "
		"oom_kills) SELECT " ID_FORMAT ", 1, 'ann', 'h1', 'p', 1, 1, 1, 1, 1, 1, 0"
		NUMBERS },
	{ "incident", incidents,
		"INSERT INTO incident (hour, kind, source, sandbox_id, detail, first_at, last_at, "
		"count) SELECT now(), 'k', 's', " ID_FORMAT ", '', now(), now(), 1" NUMBERS },
	{ "sandbox_network", policies,
		"INSERT INTO sandbox_network (sandbox_id, owner, policy) "
		"SELECT " ID_FORMAT ", 'ann', '{\"mode\":\"none\"}'" NUMBERS },
};
/* clang-format on */

/* clang-format off */
static const char *const damaged[] = {
	"no id", "../../etc/passwd", "sb_c1_0000000000000000000Z", "sb_c1_00000000000000000002/..",
	"sb_c1_00000000000000000002222222222222222222222222222222222222",
};
/* clang-format on */

static void damage(struct world *w, const char *table, int row, const char *id)
{
	char sql[300];

	snprintf(sql, sizeof(sql), "UPDATE %s SET sandbox_id = '%s' WHERE sandbox_id = "
				   "'sb_c1_%020d'",
		 table, id, row);
	raw(w->sql, sql);
	if (strcmp(table, "sandbox_network") != 0)
		return;
	snprintf(sql, sizeof(sql), "UPDATE sandbox SET id = '%s' WHERE id = 'sb_c1_%020d'", id,
		 row);
	raw(w->sql, sql);
}

/* As if nothing had been before. */
static void fill(struct world *w, const char *table, const char *rows)
{
	char sql[100];

	snprintf(sql, sizeof(sql), "DELETE FROM %s", table);
	raw(w->sql, sql);
	raw(w->sql, rows);
	if (strcmp(table, "sandbox_network") != 0)
		return;
	raw(w->sql, "DELETE FROM sandbox");
	raw(w->sql, "DELETE FROM sandbox_event");
	for (int i = 1; i <= ROWS; i++) {
		char id[SANDBOX_ID_SIZE];

		snprintf(id, sizeof(id), "sb_c1_%020d", i);
		add(w->s, id, "ann");
	}
	raw(w->sql, "UPDATE sandbox SET state = 'ready', host = 'h1'");
}

static void check_list(struct world *w, size_t list, const char *id)
{
	struct ids ids = { 0 };
	char other[200];
	struct err e, ignored;

	CHECK_OK(lists[list].list(w->s, &ids, &e), &e);
	CHECK(ids.count >= PAGE);
	ids.count = 0;
	snprintf(other, sizeof(other), "%.100s!", id);
	damage(w, lists[list].table, 2, id);
	damage(w, lists[list].table, 3, other);
	CHECK_INT(lists[list].list(w->s, &ids, &e), 2);
	CHECK_INT(e.code, ERR_INTERNAL);
	CHECK(strstr(e.msg, "the record of "));
	CHECK_INT(ids.count, GOOD); /* as many more were asked for */
	for (int n = 0; n < ids.count; n++)
		CHECK_OK(sandbox_id_check(ids.of[n], &ignored), &ignored);
}

TEST(a_damaged_id_in_any_list_is_left_out_and_counted)
{
	cleanup(world_done) struct world w = world_make();

	for (size_t i = 0; i < array_len(lists); i++) {
		for (size_t k = 0; k < array_len(damaged); k++) {
			fill(&w, lists[i].table, lists[i].fill);
			check_list(&w, i, damaged[k]);
		}
	}
}

TEST(an_alert_and_an_incident_may_be_about_no_sandbox)
{
	cleanup(world_done) struct world w = world_make();
	struct alert a = { .kind = "pool_low", .subject = "h1", .host = "h1" };
	struct incident one = { .kind = "bad_key", .source = "10.0.0.1", .count = 1 };
	struct ids ids = { 0 };
	struct err e;

	CHECK_OK(store_alert_raise(w.s, &a, &e), &e);
	CHECK_OK(store_incident_add(w.s, &one, &e), &e);
	CHECK_OK(alerts(w.s, &ids, &e), &e);
	CHECK_OK(incidents(w.s, &ids, &e), &e);
	CHECK_INT(ids.count, 2);
	CHECK_STR(ids.of[0], "");
}

TEST(the_key_of_a_session_has_the_shape_of_one_when_it_is_written_and_read)
{
	cleanup(world_done) struct world w = world_make();
	struct agent_session a = { .identity_key = "no key" }, got = { 0 };
	struct err e;

	a.choice.isolation = POLICY_SHARED;
	snprintf(a.choice.profile, sizeof(a.choice.profile), "default");
	CHECK_ERR(store_session_put(w.s, "ann", "s1", &a, &got, &e), &e, ERR_INVALID);
	CHECK_INT(raw(w.sql, "SELECT count(*) FROM agent_session"), 0);
	snprintf(a.identity_key, sizeof(a.identity_key), "ann__1");
	CHECK_OK(store_session_put(w.s, "ann", "s1", &a, &got, &e), &e);
	raw(w.sql, "UPDATE agent_session SET identity_key = 'no key'");
	CHECK_ERR(store_session_get(w.s, "ann", "s1", &got, &e), &e, ERR_INTERNAL);
	CHECK(strstr(e.msg, "cannot be a identity_key"));
}

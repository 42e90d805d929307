#include "core/placement.h"

#include "test.h"

static struct placement_host host(uint64_t promised_mb)
{
	return (struct placement_host){
		.lease = { .state = HOST_LIVE },
		.total = { { 10000, 100000, 4000, 5000 } },
		.reserve = { { 1000, 5000, 0, 500 } },
		.promised = { { promised_mb, 0, 0, 0 } },
		.sandboxes_max = 10,
		.cpu_share = 4,
		.disk_known = true,
		.disk_free_mb = 50000,
	};
}

static const struct resources small = { { 1000, 2000, 1000, 256 } };

TEST(a_host_is_filled_to_the_last_and_not_beyond)
{
	struct placement_host h = host(8000);
	struct err e;

	CHECK_OK(placement_admit(&h, &small, &e), &e);
	h.promised.of[RESOURCE_MEMORY_MB] += small.of[RESOURCE_MEMORY_MB];
	CHECK_ERR(placement_admit(&h, &small, &e), &e, ERR_BUSY);
	CHECK_STR(e.msg, "memory_mb: 1000 asked for, 0 of 9000 left");
	h.promised.of[RESOURCE_MEMORY_MB] -= small.of[RESOURCE_MEMORY_MB];
	CHECK_OK(placement_admit(&h, &small, &e), &e);
}

TEST(each_resource_is_refused_by_its_name)
{
	static const char *const names[RESOURCE_COUNT] = { "memory_mb:", "disk_mb:", "cpu_milli:",
							   "pids:" };

	for (int r = 0; r < RESOURCE_COUNT; r++) {
		struct placement_host h = host(0);
		struct resources need = { 0 };
		struct err e;

		need.of[r] = h.total.of[r] - h.reserve.of[r];
		if (r == RESOURCE_CPU_MILLI)
			need.of[r] *= h.cpu_share;
		CHECK_OK(placement_admit(&h, &need, &e), &e);
		need.of[r]++;
		CHECK_ERR(placement_admit(&h, &need, &e), &e, ERR_BUSY);
		CHECK(strncmp(e.msg, names[r], strlen(names[r])) == 0);
		need.of[r] = UINT64_MAX;
		CHECK_ERR(placement_admit(&h, &need, &e), &e, ERR_BUSY);
	}
}

TEST(only_a_live_host_with_room_and_a_measured_disk_takes_one)
{
	struct placement_host h;
	struct err e;

	for (int s = 0; s < HOST_LEASE_STATE_COUNT; s++) {
		h = host(0);
		h.lease.state = (enum host_lease_state)s;
		CHECK_INT(placement_admit(&h, &small, &e) == 0, s == HOST_LIVE);
	}
	h = host(0);
	h.sandboxes = 10;
	CHECK_ERR(placement_admit(&h, &small, &e), &e, ERR_BUSY);
	CHECK_STR(e.msg, "the host has 10 sandboxes, its limit is 10");
	h = host(0);
	h.disk_known = false;
	CHECK_ERR(placement_admit(&h, &small, &e), &e, ERR_BUSY);
	h = host(0);
	h.disk_free_mb = 2047;
	CHECK_ERR(placement_admit(&h, &small, &e), &e, ERR_BUSY);
	CHECK_STR(e.msg, "the host has 2047 MB of disk free, below the 2048 it keeps");
	h = host(0);
	h.memory_keep_mb = 512;
	h.memory_free_mb = 512;
	CHECK_OK(placement_admit(&h, &small, &e), &e);
	h.memory_free_mb = 511;
	CHECK_ERR(placement_admit(&h, &small, &e), &e, ERR_BUSY);
	CHECK_STR(e.msg, "the host has 511 MB of memory free, below the 512 it keeps");
	h = (struct placement_host){ 0 };
	CHECK_ERR(placement_admit(&h, &small, &e), &e, ERR_BUSY);
}

TEST(a_full_host_is_asked_again_when_something_may_have_ended)
{
	CHECK_INT(placement_retry_s(0), 1);
	CHECK_INT(placement_retry_s(1), 1);
	CHECK_INT(placement_retry_s(6999), 7);
	CHECK_INT(placement_retry_s(7000), 7);
	CHECK_INT(placement_retry_s(7001), 8);
	CHECK_INT(placement_retry_s(86400000), 300); /* somebody may delete something before */
	CHECK_INT(placement_retry_s(NEVER), 300);
	CHECK_INT(placement_retry_s(UINT64_MAX), 300);
}

TEST(of_two_drawn_the_less_loaded_wins)
{
	struct placement_host hosts[] = { host(8000), host(100), host(4000), host(9000) };
	static const uint64_t draws[][3] = {
		{ 0, 0, 1 },                   /* 0 and 1 */
		{ 0, 1, 2 },                   /* 0 and 2 */
		{ 1, 0, 1 },                   /* 1 and 2 */
		{ 2, 0, 2 },                   /* 2 and 0 */
		{ UINT64_MAX, UINT64_MAX, 2 }, /* 0 and 2: the last host has no room */
	};
	size_t chosen = 9;
	struct err e;

	for (size_t i = 0; i < array_len(draws); i++) {
		CHECK_OK(placement_choose(hosts, 4, &small, draws[i], &chosen, &e), &e);
		CHECK_INT((long long)chosen, (long long)draws[i][2]);
	}
}

TEST(whatever_is_drawn_the_chosen_host_takes_it)
{
	struct placement_host hosts[] = { host(9000), host(0), host(9000), host(1), host(2) };
	size_t chosen;
	struct err e;

	for (uint64_t i = 0; i < 100; i++) {
		uint64_t draw[2] = { i, i / 10 };

		CHECK_OK(placement_choose(hosts, 5, &small, draw, &chosen, &e), &e);
		CHECK_OK(placement_admit(&hosts[chosen], &small, &e), &e);
		CHECK(chosen != 4 || placement_load(&hosts[4]) <= placement_load(&hosts[3]));
	}
}

TEST(where_no_host_takes_it_the_answer_says_why)
{
	struct placement_host hosts[] = { host(9000), host(9000) };
	static const uint64_t draw[2] = { 0, 0 };
	size_t chosen = 7;
	struct err e;

	CHECK_ERR(placement_choose(hosts, 1, &small, draw, &chosen, &e), &e, ERR_BUSY);
	CHECK_STR(e.msg, "memory_mb: 1000 asked for, 0 of 9000 left");
	CHECK_ERR(placement_choose(hosts, 2, &small, draw, &chosen, &e), &e, ERR_BUSY);
	CHECK_ERR(placement_choose(hosts, 0, &small, draw, &chosen, &e), &e, ERR_BUSY);
	CHECK_INT((long long)chosen, 7);
}

TEST(load_is_that_of_what_is_scarcest)
{
	struct placement_host h = host(900);

	CHECK_INT(placement_load(&h), 100);
	h.promised.of[RESOURCE_PIDS] = 2250;
	CHECK_INT(placement_load(&h), 500);
	h.sandboxes = 8;
	CHECK_INT(placement_load(&h), 800);
	h.total.of[RESOURCE_DISK_MB] = UINT64_MAX;
	h.promised.of[RESOURCE_DISK_MB] = UINT64_MAX - 10000;
	CHECK(placement_load(&h) >= 999 && placement_load(&h) <= 1000);
}

TEST(one_host_that_takes_it_is_chosen)
{
	struct placement_host hosts[] = { host(0) };
	static const uint64_t draw[2] = { 5, 5 };
	size_t chosen = 7;
	struct err e;

	CHECK_OK(placement_choose(hosts, 1, &small, draw, &chosen, &e), &e);
	CHECK_INT((long long)chosen, 0);
}

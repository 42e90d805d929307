#include "core/placement.h"

#include <inttypes.h>

#define RETRY_MOST_S 300 /* a client may delete a sandbox at any time */

static const char *const names[RESOURCE_COUNT] = {
	[RESOURCE_MEMORY_MB] = "memory_mb",
	[RESOURCE_DISK_MB] = "disk_mb",
	[RESOURCE_CPU_MILLI] = "cpu_milli",
	[RESOURCE_PIDS] = "pids",
};

/* What may be promised in all. */
static uint64_t capacity(const struct placement_host *h, int r)
{
	uint64_t total = h->total.of[r], reserve = h->reserve.of[r];
	uint64_t share = r == RESOURCE_CPU_MILLI && h->cpu_share ? h->cpu_share : 1;
	uint64_t left = total > reserve ? total - reserve : 0;

	return left > UINT64_MAX / share ? UINT64_MAX : left * share;
}

static uint64_t available(const struct placement_host *h, int r)
{
	uint64_t all = capacity(h, r), promised = h->promised.of[r];

	return all > promised ? all - promised : 0;
}

static int low(const char *what, uint64_t has, uint64_t keeps, struct err *e)
{
	return err_set(e, ERR_BUSY,
		       "the host has %" PRIu64 " MB of %s free, below the %" PRIu64 " it keeps",
		       has, what, keeps);
}

uint64_t placement_disk_keep_mb(const struct placement_host *h)
{
	return h->disk_keep_mb ? h->disk_keep_mb : LOW_DISK_MB;
}

/* More may be promised than there is: what is really free decides too. */
static int admit_measured(const struct placement_host *h, struct err *e)
{
	uint64_t keep = placement_disk_keep_mb(h);

	if (!h->disk_known)
		return err_set(e, ERR_BUSY, "the host's free disk could not be measured");
	if (h->disk_free_mb < keep)
		return low("disk", h->disk_free_mb, keep, e);
	if (h->memory_free_mb < h->memory_keep_mb)
		return low("memory", h->memory_free_mb, h->memory_keep_mb, e);
	return 0;
}

int placement_admit(const struct placement_host *h, const struct resources *need, struct err *e)
{
	if (!host_lease_takes_new(&h->lease))
		return err_set(e, ERR_BUSY, "the host is %s",
			       host_lease_state_name(h->lease.state));
	if (h->sandboxes >= h->sandboxes_max)
		return err_set(e, ERR_BUSY, "the host has %u sandboxes, its limit is %u",
			       h->sandboxes, h->sandboxes_max);
	for (int r = 0; r < RESOURCE_COUNT; r++)
		if (need->of[r] > available(h, r))
			return err_set(e, ERR_BUSY,
				       "%s: %" PRIu64 " asked for, %" PRIu64 " of %" PRIu64
				       " left",
				       names[r], need->of[r], available(h, r), capacity(h, r));
	return admit_measured(h, e);
}

unsigned placement_retry_s(uint64_t soonest_ms)
{
	uint64_t s = soonest_ms / 1000 + (soonest_ms % 1000 > 0);

	if (s < 1)
		return 1;
	return s > RETRY_MOST_S ? RETRY_MOST_S : (unsigned)s;
}

static unsigned fullness(uint64_t used, uint64_t all)
{
	if (used >= all)
		return 1000;
	if (used > UINT64_MAX / 1000)
		return (unsigned)(used / (all / 1000));
	return (unsigned)(used * 1000 / all);
}

unsigned placement_load(const struct placement_host *h)
{
	unsigned load = fullness(h->sandboxes, h->sandboxes_max);

	for (int r = 0; r < RESOURCE_COUNT; r++) {
		unsigned full = fullness(h->promised.of[r], capacity(h, r));

		load = full > load ? full : load;
	}
	return load;
}

/* The index of the n-th host that takes it. */
static size_t nth_fit(const struct placement_host *hosts, size_t n, const struct resources *need,
		      uint64_t nth)
{
	struct err why;

	for (size_t i = 0; i < n; i++)
		if (placement_admit(&hosts[i], need, &why) == 0 && nth-- == 0)
			return i;
	return n;
}

int placement_choose(const struct placement_host *hosts, size_t n, const struct resources *need,
		     const uint64_t random[2], size_t *ret, struct err *e)
{
	size_t fit = 0, first, second, a, b;
	struct err why = { 0 };

	for (size_t i = 0; i < n; i++)
		fit += placement_admit(&hosts[i], need, &why) == 0;
	if (fit == 0 && n == 1)
		return err_set(e, ERR_BUSY, "%s", why.msg);
	if (fit == 0)
		return err_set(e, ERR_BUSY, "none of %zu hosts takes it; the last: %s", n,
			       n ? why.msg : "there is none");
	first = random[0] % fit;
	second = fit > 1 ? (first + 1 + random[1] % (fit - 1)) % fit : first;
	a = nth_fit(hosts, n, need, first);
	b = nth_fit(hosts, n, need, second);
	*ret = placement_load(&hosts[b]) < placement_load(&hosts[a]) ? b : a;
	return 0;
}

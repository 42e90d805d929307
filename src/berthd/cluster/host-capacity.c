#include "berthd/cluster/host-capacity.h"

#include "lib/str.h"

#define MB (1024 * 1024)

struct host_capacity host_capacity_of(const struct node_capacity *c)
{
	struct host_capacity of = {
		.cpus = c->cpus,
		.memory_mb = c->memory_total / MB,
		.memory_free_mb = c->memory_available / MB,
		.disk_mb = c->disk_total / MB,
		.disk_free_mb = c->disk_available / MB,
		.open_files = c->open_files,
	};

	(void)!str_copy(of.runtimes, sizeof(of.runtimes), c->runtimes);
	return of;
}

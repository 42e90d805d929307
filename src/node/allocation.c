#include "node/allocation.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/crash.h"
#include "lib/file.h"
#include "lib/str.h"
#include "lib/time.h"
#include "node/node.h"
#include "node/userns.h"

#define RECORD_MAX 4096

/* What the record file holds. */
struct saved {
	char sandbox[NODE_NAME_SIZE];
	uint64_t generation;
	char image[NODE_DIGEST_SIZE];
	char runtime[NODE_RUNTIME_SIZE];
	struct node_limits limits;
	uint32_t slot, life, protocol;
	uint64_t made_ms, used_group;
	struct node_usage used;
};

/* clang-format off */
static const struct field saved_fields[] = {
	FIELD(FIELD_STR, saved, sandbox),
	FIELD(FIELD_U64, saved, generation),
	FIELD(FIELD_STR, saved, image),
	FIELD(FIELD_STR, saved, runtime),
	FIELD(FIELD_U64, saved, limits.memory_bytes),
	FIELD(FIELD_U64, saved, limits.disk_bytes),
	FIELD(FIELD_U32, saved, limits.cpu_milli),
	FIELD(FIELD_U32, saved, limits.pids),
	FIELD(FIELD_U32, saved, limits.open_files),
	FIELD(FIELD_U32, saved, slot),
	FIELD(FIELD_U32, saved, life),
	FIELD(FIELD_U64, saved, made_ms),
	FIELD(FIELD_U64, saved, used_group),
	FIELD(FIELD_U64, saved, used.cpu_us),
	FIELD(FIELD_U64, saved, used.memory_peak_bytes),
	FIELD(FIELD_U64, saved, used.pids_peak),
	FIELD(FIELD_U64, saved, used.pids_refused),
	FIELD(FIELD_U64, saved, used.disk_bytes),
	FIELD(FIELD_U64, saved, used.oom_kills),
	FIELD(FIELD_U32, saved, protocol),
	{ 0 }
};
/* clang-format on */

static const char *const phase_names[PHASE_COUNT] = {
	[PHASE_BUILDING] = "building",
	[PHASE_BUILT] = "built",
	[PHASE_STARTING] = "starting",
	[PHASE_RUNNING] = "running",
	[PHASE_ENDED] = "ended",
	[PHASE_DESTROYING] = "destroying",
};

const char *phase_name(enum phase p)
{
	return phase_names[p];
}

int allocation_name(const char *sandbox, uint64_t generation, char out[ALLOCATION_NAME_SIZE],
		    struct err *e)
{
	size_t len = strspn(sandbox, "abcdefghijklmnopqrstuvwxyz0123456789_");

	if (len == 0 || sandbox[len] || sandbox[0] == '_' || generation == 0)
		return err_set(e, ERR_INVALID, "not a sandbox and generation: %.40s, %" PRIu64,
			       sandbox, generation);
	snprintf(out, ALLOCATION_NAME_SIZE, "%s.%" PRIu64, sandbox, generation);
	return 0;
}

static uint32_t bucket_of(const char *sandbox)
{
	return str_hash(sandbox) % ALLOCATION_BUCKETS;
}

struct allocation *allocation_find(const struct allocations *all, const char *sandbox)
{
	struct allocation *a = all->buckets[bucket_of(sandbox)];

	while (a && strcmp(a->spec.sandbox, sandbox) != 0)
		a = a->next;
	return a;
}

int allocation_target(const struct allocations *all, const struct node_target *t,
		      struct allocation **ret, struct err *e)
{
	struct allocation *a = allocation_find(all, t->sandbox);

	if (!a)
		return err_set(e, ERR_NOT_FOUND, "%s is not on this host", t->sandbox);
	if (a->spec.generation != t->generation)
		return err_set(e, ERR_CONFLICT,
			       "%s is generation %" PRIu64 " here, not %" PRIu64, t->sandbox,
			       a->spec.generation, t->generation);
	*ret = a;
	return 0;
}

static void table_add(struct allocations *all, struct allocation *a)
{
	struct allocation **bucket = &all->buckets[bucket_of(a->spec.sandbox)];

	a->next = *bucket;
	*bucket = a;
	all->count++;
}

static void table_remove(struct allocations *all, struct allocation *a)
{
	struct allocation **at = &all->buckets[bucket_of(a->spec.sandbox)];

	while (*at && *at != a)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = a->next;
	all->count--;
}

int allocation_save(struct allocation *a, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(RECORD_MAX);
	struct saved s = {
		.generation = a->spec.generation,
		.limits = a->spec.limits,
		.slot = a->slot,
		.life = a->life,
		.protocol = a->protocol,
		.made_ms = a->made_ms,
		.used_group = a->used_group,
		.used = a->used,
	};

	memcpy(s.sandbox, a->spec.sandbox, sizeof(s.sandbox));
	memcpy(s.image, a->spec.image, sizeof(s.image));
	memcpy(s.runtime, a->spec.runtime, sizeof(s.runtime));
	record_encode(&text, saved_fields, &s);
	/* It need not survive a power cut: then nothing of it runs, and the disk has its name. */
	if (file_replace_fast(a->dirfd, "record", text.data, text.len, e) < 0)
		return -1;
	crash_point("node.record-saved");
	return 0;
}

static struct allocation *allocation_new(struct node *n, const char *name)
{
	struct allocation *a = xcalloc(1, sizeof(*a));

	a->node = n;
	a->dirfd = a->pidfd = a->netns = -1;
	(void)!str_copy(a->name, sizeof(a->name), name);
	return a;
}

static void allocation_freep(struct allocation **a)
{
	if (*a)
		allocation_free(*a);
}

void allocation_free(struct allocation *a)
{
	close_fd(&a->dirfd);
	close_fd(&a->pidfd);
	close_fd(&a->netns);
	free(a);
}

static int open_dirs(struct allocation *a, struct err *e)
{
	cleanup(close_fd) int fd = -1;

	if (dir_open(a->node->alloc_fd, a->name, 0700, &a->dirfd, e) < 0)
		return -1;
	crash_point("node.directory-made");
	return dir_open(a->dirfd, "bundle", 0700, &fd, e);
}

static int give_slot(struct allocation *a, const uint32_t *slot, struct err *e)
{
	struct slots *s = &a->node->slots;

	if (!slot || *slot >= SLOT_COUNT || slot_is_used(s, *slot))
		return slot_claim(s, &a->slot, &a->netns, e);
	a->slot = *slot;
	slot_keep(s, *slot);
	return 0;
}

int allocation_make(struct node *n, const struct node_create *spec, const uint32_t *slot,
		    struct allocation **ret, struct err *e)
{
	cleanup(allocation_freep) struct allocation *a = NULL;
	char name[ALLOCATION_NAME_SIZE];

	if (allocation_name(spec->sandbox, spec->generation, name, e) < 0)
		return -1;
	a = allocation_new(n, name);
	a->spec = *spec;
	a->made_ms = time_wall_ms();
	a->runtime = runtime_find(spec->runtime);
	if (!a->runtime)
		return err_set(e, ERR_UNSUPPORTED, "no such runtime: %s", spec->runtime);
	if (give_slot(a, slot, e) < 0)
		return -1;
	if (open_dirs(a, e) < 0 || allocation_save(a, e) < 0) {
		slot_give_back(&n->slots, a->slot);
		return err_wrap(e, "write down %s", name);
	}
	table_add(n->all, a);
	*ret = take_ptr(a);
	return 0;
}

static int unpack(struct allocation *a, const struct buf *text, struct err *e)
{
	char name[ALLOCATION_NAME_SIZE];
	struct saved s = { 0 };

	if (record_decode((struct bytes){ (const uint8_t *)text->data, text->len }, saved_fields,
			  &s, e) < 0 ||
	    allocation_name(s.sandbox, s.generation, name, e) < 0)
		return -1;
	a->runtime = runtime_find(s.runtime);
	if (strcmp(name, a->name) != 0 || s.slot >= SLOT_COUNT || !a->runtime)
		return err_set(e, ERR_INVALID, "the record is not of %s", a->name);
	a->spec = (struct node_create){
		.generation = s.generation,
		.limits = s.limits,
	};
	memcpy(a->spec.sandbox, s.sandbox, sizeof(s.sandbox));
	memcpy(a->spec.image, s.image, sizeof(s.image));
	memcpy(a->spec.runtime, s.runtime, sizeof(s.runtime));
	a->slot = s.slot;
	a->life = s.life;
	a->protocol = s.protocol;
	a->made_ms = s.made_ms;
	a->used_group = s.used_group;
	a->used = s.used;
	return 0;
}

int allocation_load(struct node *n, const char *name, struct allocation **ret, struct err *e)
{
	cleanup(allocation_freep) struct allocation *a = allocation_new(n, name);
	cleanup(buf_done) struct buf text = buf_make(RECORD_MAX);

	if (open_dirs(a, e) < 0 || file_read(a->dirfd, "record", &text, e) < 0 ||
	    unpack(a, &text, e) < 0)
		return err_wrap(e, "read the record of %s", name);
	slot_keep(&n->slots, a->slot);
	table_add(n->all, a);
	*ret = take_ptr(a);
	return 0;
}

int allocation_drop(struct allocation *a, struct err *e)
{
	slot_rest(&a->node->slots, a->slot);
	if (file_remove_tree(a->node->alloc_fd, a->name, e) < 0)
		return -1;
	crash_point("node.record-removed");
	slot_give_back(&a->node->slots, a->slot);
	table_remove(a->node->all, a);
	allocation_free(a);
	return 0;
}

uint32_t allocation_first_id(const struct allocation *a)
{
	return (uint32_t)a->node->settings.first_id + a->slot * USERNS_RANGE;
}

const char *allocation_path(const struct allocation *a, const char *file, char *out, size_t size)
{
	snprintf(out, size, "%s/alloc/%s/%s", a->node->settings.run_dir, a->name, file);
	return out;
}

/*
 * inventory: everything of any sandbox that is on this host, whatever it is
 * known by: our own record, a disk, a cgroup, an engine's record. One that has
 * only one of them is told like one that has all.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/file.h"
#include "lib/str.h"
#include "lib/strv.h"
#include "lib/time.h"
#include "node/node.h"
#include "node/verbs.h"
#include "node/veth.h"

#define TURN_MS   1    /* from one turn to the next */
#define SLICE_US  5000 /* for observing, in one turn of the loop */
#define WAIT_MS   50   /* until a peer that has much to read is looked at again */
#define WAITS_MAX 600  /* of these, then its call fails */

/* What others hang behind "sb_c1_x.3": the engine's start, and gVisor's files. */
static const char *const tails[] = { ".launch", "_sandbox:" };

static void add_name(struct strv *names, const char *file)
{
	size_t len = strlen(file);

	for (size_t i = 0; i < array_len(tails); i++) {
		const char *tail = strstr(file, tails[i]);

		if (tail && (size_t)(tail - file) < len)
			len = (size_t)(tail - file);
	}
	if (file[0] != '.')
		strv_addf(names, "%.*s", (int)len, file);
}

static int add_dir(struct strv *names, int dirfd, const char *path, struct err *e)
{
	int fd = openat(dirfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	cleanup(dir_closep) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (!dir && errno == ENOENT)
		return 0;
	if (!dir)
		return err_sys(e, errno, "read %s", path);
	while ((entry = readdir(dir)))
		add_name(names, entry->d_name);
	return 0;
}

static void on_wire(uint32_t slot, const char *label, void *arg)
{
	(void)slot;
	if (label[0]) /* else no allocation has it yet */
		add_name(arg, label);
}

static int add_all(struct strv *names, struct node *n, struct err *e)
{
	if (add_dir(names, n->alloc_fd, ".", e) < 0 ||
	    veth_list(&n->router.links, on_wire, names, e) < 0 ||
	    add_dir(names, n->pool.sandboxes, ".", e) < 0)
		return -1;
	for (size_t i = 0; i < n->cgroups.tree_count; i++)
		if (add_dir(names, n->cgroups.trees[i], n->cgroups.parent, e) < 0)
			return -1;
	for (size_t i = 0; runtime_at(i); i++)
		if (add_dir(names, n->engine_fd, runtime_at(i)->name, e) < 0)
			return -1;
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "sb_c1_x.3" to its two parts. */
static bool name_parse(const char *name, char sandbox[NODE_NAME_SIZE], uint64_t *generation)
{
	const char *dot = strrchr(name, '.');
	struct err e;

	return dot && str_copy_bytes(sandbox, NODE_NAME_SIZE, name, (size_t)(dot - name)) &&
	       str_u64(dot + 1, generation, &e) == 0;
}

/* ---- a list on its way ---- */

/*
 * To observe one is some twenty system calls, or a look at all links, and a host has
 * thousands: a turn of the loop has its time for them, so that verbs are served
 * meanwhile, and none are told while the peer has much to read. What ends during that
 * time comes after the list.
 */
struct listing {
	uv_timer_t timer; /* the next turn; data is the listing */
	struct call *call;
	struct strv names, news;
	size_t at;
	unsigned waits; /* for the peer to read, one after the other */
	struct listing *next;
};

static void on_timer_closed(uv_handle_t *handle)
{
	struct listing *l = handle->data;

	strv_done(&l->names);
	strv_done(&l->news);
	free(l);
}

static void listing_close(struct listing *l)
{
	struct listing **at = &l->call->node->listings;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	uv_close((uv_handle_t *)&l->timer, on_timer_closed);
}

static void tell(struct call *c, const char *name)
{
	char sandbox[NODE_NAME_SIZE];
	struct node_observation o;
	uint64_t generation;

	if (!name_parse(name, sandbox, &generation))
		return;
	allocation_observe(c->node, sandbox, generation, &o);
	call_part(c, &o);
}

/* All is told: the call ends, or goes on with the news. */
static void listing_end(struct listing *l)
{
	static const struct node_nothing nothing;
	struct call *c = l->call;

	if (!c->ask.cursor.follow || !c->link) {
		listing_close(l);
		return call_reply(c, &nothing, -1);
	}
	call_part(c, &(struct node_observation){ 0 }); /* the list is through */
	for (size_t i = 0; i < l->news.len; i++)
		tell(c, l->news.items[i]);
	c->next_waiter = c->node->followers;
	c->node->followers = c;
	listing_close(l);
}

static void listing_fail(struct listing *l)
{
	struct call *c = l->call;
	struct err e;

	err_set(&e, ERR_BUSY, "the list was not read for %d s", WAITS_MAX * WAIT_MS / 1000);
	listing_close(l);
	call_fail(c, &e);
}

static void listing_go_on(struct listing *l);

static void on_turn(uv_timer_t *timer)
{
	listing_go_on(timer->data);
}

static void listing_go_on(struct listing *l)
{
	const struct link *link = l->call->link;
	const struct strv *names = &l->names;
	bool full = link && link->out.bytes > LINK_QUEUE_MAX / 2;
	uint64_t began = time_mono_us();

	l->waits = full ? l->waits + 1 : 0;
	if (l->waits > WAITS_MAX)
		return listing_fail(l);
	for (; !full && l->at < names->len && time_mono_us() - began < SLICE_US; l->at++) {
		if (l->at > 0 && strcmp(names->items[l->at - 1], names->items[l->at]) == 0)
			continue;
		tell(l->call, names->items[l->at]);
	}
	if (l->at == names->len || !l->call->link)
		return listing_end(l);
	/* Not 0: that would come before what else waits, in the same round of timers. */
	uv_timer_start(&l->timer, on_turn, full ? WAIT_MS : TURN_MS, 0);
}

void verb_news(struct node *n, const char *name)
{
	for (struct listing *l = n->listings; l; l = l->next)
		if (l->call->ask.cursor.follow)
			strv_add(&l->news, name);
}

void verb_end_listings(struct node *n)
{
	while (n->listings) {
		struct listing *l = n->listings;
		static const struct node_nothing nothing;
		struct call *c = l->call;

		listing_close(l);
		call_reply(c, &nothing, -1);
	}
}

void verb_inventory(struct call *c)
{
	struct listing *l = xcalloc(1, sizeof(*l));
	struct err e = { 0 };

	l->call = c;
	l->timer.data = l;
	l->next = c->node->listings;
	c->node->listings = l;
	uv_timer_init(&c->node->loop, &l->timer);
	/* A follower must hear what ends, also where not everything could be listed. */
	if (add_all(&l->names, c->node, &e) < 0 && !c->ask.cursor.follow) {
		listing_close(l);
		return call_fail(c, &e);
	}
	if (l->names.len > 0)
		qsort(l->names.items, l->names.len, sizeof(*l->names.items), by_name);
	listing_go_on(l);
}

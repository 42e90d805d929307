#include "berthd/control/check/collect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/control/check/unleased.h"
#include "berthd/control/inflight.h"
#include "berthd/runtime/berthd.h"
#include "lib/str.h"
#include "store/image.h"

#define AGAIN_MS 300
#define LATE_MS  30000 /* past its deadline: no berthd is at it */
#define NODE_MS  10000 /* for berth-node to say what it has */

struct fact {
	struct node_observation seen;
	bool has_row; /* one of this host, and of this generation */
};

struct look_world {
	struct look *look; /* NULL: berth-node took too long, and its answer ends this */
	struct job job;
	struct store *store; /* while the job runs */
	uv_timer_t timer;
	struct fact *facts;
	size_t fact_count, fact_size;
	char (*digests)[NODE_DIGEST_SIZE]; /* images of this host */
	bool *named;
	size_t digest_count, digest_size;
	struct check_finding *first; /* of the first round */
	size_t first_count;
	bool second;
};

struct look *look_new(struct reactor *r, const char *request)
{
	struct look *l = xcalloc(1, sizeof(*l));

	l->reactor = r;
	(void)!str_copy(l->request, sizeof(l->request), request);
	return l;
}

void look_free(struct look *l)
{
	free(l->findings);
	free(l);
}

/* ---- collecting ---- */

static void on_fact(void *data, const union node_any *part)
{
	struct look_world *w = data;

	if (w->fact_count == LOOK_FACTS_MAX || !part->observation.sandbox[0])
		return;
	if (w->fact_count == w->fact_size) {
		w->fact_size = w->fact_size ? 2 * w->fact_size : 64;
		w->facts = xrealloc(w->facts, w->fact_size * sizeof(*w->facts));
	}
	w->facts[w->fact_count++] = (struct fact){ .seen = part->observation };
}

static void on_digest(void *data, const union node_any *part)
{
	struct look_world *w = data;

	if (w->digest_count == LOOK_FACTS_MAX || !part->image.digest[0])
		return;
	if (w->digest_count == w->digest_size) {
		w->digest_size = w->digest_size ? 2 * w->digest_size : 16;
		w->digests = xrealloc(w->digests, w->digest_size * sizeof(*w->digests));
		w->named = xrealloc(w->named, w->digest_size * sizeof(*w->named));
	}
	w->named[w->digest_count] = false;
	memcpy(w->digests[w->digest_count++], part->image.digest, NODE_DIGEST_SIZE);
}

static struct check_finding *add(struct look *l, enum check_kind kind, const char *what)
{
	struct check_finding *f;

	if (l->count == LOOK_FINDINGS_MAX)
		return &l->spare;
	l->findings = xrealloc(l->findings, (l->count + 1) * sizeof(*l->findings));
	f = &l->findings[l->count++];
	*f = (struct check_finding){ .kind = kind };
	(void)!str_copy(f->what, sizeof(f->what), what);
	return f;
}

static struct fact *fact_of(struct look_world *w, const struct sandbox *sb)
{
	for (size_t i = 0; i < w->fact_count; i++)
		if (w->facts[i].seen.generation == sb->generation &&
		    strcmp(w->facts[i].seen.sandbox, sb->id) == 0)
			return &w->facts[i];
	return NULL;
}

static void compare_wrappers(struct look_world *w, const struct sandbox *sb)
{
	struct check_finding *f;
	struct unleased found;
	struct err e;
	int n = check_unleased(w->look->reactor->berthd, w->store, sb, &found, &e);

	if (n == 0)
		return;
	f = add(w->look, n > 0 ? CHECK_UNLEASED : CHECK_UNKNOWN, sb->id);
	f->version = sb->version;
	if (n < 0)
		snprintf(f->record, sizeof(f->record), "its leases: %.150s", e.msg);
	else
		snprintf(f->record, sizeof(f->record), "lease %s, instance \"%s\"",
			 lease_state_name(found.lease.lease.state), found.lease.lease.instance.id);
	snprintf(f->fact, sizeof(f->fact), "exec %s runs", n > 0 ? found.exec : "of a wrapper");
}

static void compare_row(const struct sandbox *sb, void *arg)
{
	struct look_world *w = arg;
	struct look *l = w->look;
	struct fact *fact = fact_of(w, sb);
	enum check_kind kind = check_row_and_fact(sb, fact ? &fact->seen : NULL);
	struct check_finding *f;

	l->rows++;
	if (fact)
		fact->has_row = true;
	if (sb->state == SANDBOX_READY)
		compare_wrappers(w, sb);
	if (kind == CHECK_NONE || inflight_has(l->reactor->berthd->inflight, sb->id))
		return; /* the change under way also brings it to its end */
	f = add(l, kind, sb->id);
	f->version = sb->version;
	check_record_text(sb, f->record, sizeof(f->record));
	check_fact_text(fact ? &fact->seen : NULL, f->fact, sizeof(f->fact));
}

static void add_record(const struct check_row *row, void *arg)
{
	struct look_world *w = arg;
	struct check_finding *f = add(w->look, check_kind_by_name(row->kind), row->id);

	(void)!str_copy(f->record, sizeof(f->record), row->detail);
}

static void name_image(const struct image *image, void *arg)
{
	struct look_world *w = arg;
	struct check_finding *f;
	bool here = false;

	for (size_t i = 0; i < w->digest_count; i++)
		if (strcmp(w->digests[i], image->digest) == 0)
			here = w->named[i] = true;
	if (here)
		return;
	f = add(w->look, CHECK_NO_IMAGE, image->name);
	(void)!str_copy(f->record, sizeof(f->record), image->digest);
	snprintf(f->fact, sizeof(f->fact), "no such image");
}

static int compare_images(struct look_world *w, struct store *s, struct err *e)
{
	struct check_finding *f;
	bool unused;

	if (store_image_list(s, name_image, w, e) < 0)
		return -1;
	for (size_t i = 0; i < w->digest_count; i++) {
		if (w->named[i])
			continue;
		if (store_digest_is_unused(s, w->digests[i], &unused, e) < 0)
			return -1;
		if (!unused)
			continue;
		f = add(w->look, CHECK_UNNAMED_IMAGE, w->digests[i]);
		snprintf(f->record, sizeof(f->record), "none");
		snprintf(f->fact, sizeof(f->fact), "its files are here");
	}
	return 0;
}

/* What is here and no row of this host names. */
static int compare_facts(struct look_world *w, struct store *s, struct err *e)
{
	const char *host = w->look->reactor->berthd->settings.host;

	for (size_t i = 0; i < w->fact_count; i++) {
		const struct node_observation *o = &w->facts[i].seen;
		struct sandbox sb = { 0 };
		struct check_finding *f;
		struct err why;
		bool known;

		if (w->facts[i].has_row)
			continue;
		known = store_sandbox_get(s, NULL, o->sandbox, &sb, &why) == 0;
		if (!known && why.code == ERR_INTERNAL) {
			f = add(w->look, CHECK_UNKNOWN, o->sandbox);
			snprintf(f->record, sizeof(f->record), "%.199s", why.msg);
			check_fact_text(o, f->fact, sizeof(f->fact));
			continue;
		}
		if (!known && why.code != ERR_NOT_FOUND) {
			*e = why;
			return -1;
		}
		f = add(w->look, check_fact_alone(known ? &sb : NULL, host), o->sandbox);
		f->version = known ? sb.version : 0;
		f->generation = o->generation;
		check_record_text(known ? &sb : NULL, f->record, sizeof(f->record));
		check_fact_text(o, f->fact, sizeof(f->fact));
	}
	return 0;
}

/* What a damaged record asks for is not known; those beside it are checked. */
static int compare_rows(struct look_world *w, struct store *s, const char *host, struct err *e)
{
	int bad = store_sandboxes_of_host(s, host, compare_row, w, e);
	struct check_finding *f;

	if (bad <= 0)
		return bad;
	f = add(w->look, CHECK_UNKNOWN, host);
	snprintf(f->record, sizeof(f->record), "not to be read: %d; %.150s", bad, e->msg);
	return 0;
}

static int read_records(struct job *job, struct store *s, struct err *e)
{
	struct look_world *w = container_of(job, struct look_world, job);
	const struct berthd_settings *set = &w->look->reactor->berthd->settings;

	w->store = s;
	if (compare_rows(w, s, set->host, e) < 0 || compare_facts(w, s, e) < 0 ||
	    compare_images(w, s, e) < 0)
		return -1;
	return store_check(s, set->host, LATE_MS, add_record, w, e);
}

/* ---- the two rounds ---- */

static void on_world_closed(uv_handle_t *handle)
{
	struct look_world *w = handle->data;

	free(w->facts);
	free(w->digests);
	free(w->named);
	free(w->first);
	free(w);
}

static void end(struct look_world *w, const struct err *why)
{
	struct look *l = w->look;

	l->facts = w->fact_count;
	l->world = NULL;
	uv_close((uv_handle_t *)&w->timer, on_world_closed);
	l->done(l, why);
}

/* Told already that it took too long; this only had to wait for berth-node's answer. */
static bool is_late(struct look_world *w)
{
	if (!w->look)
		uv_close((uv_handle_t *)&w->timer, on_world_closed);
	return !w->look;
}

static void on_deadline(uv_timer_t *timer)
{
	struct look_world *w = timer->data;
	struct look *l = take_ptr(w->look);
	struct err e;

	err_set(&e, ERR_TIMEOUT, "berth-node has not answered in %d s", NODE_MS / 1000);
	l->world = NULL;
	l->done(l, &e);
}

static bool was_found(const struct look_world *w, const struct check_finding *f)
{
	for (size_t i = 0; i < w->first_count; i++)
		if (w->first[i].kind == f->kind && w->first[i].version == f->version &&
		    strcmp(w->first[i].what, f->what) == 0)
			return true;
	return false;
}

static void keep_both(struct look_world *w)
{
	struct look *l = w->look;
	size_t kept = 0;

	for (size_t i = 0; i < l->count; i++)
		if (was_found(w, &l->findings[i]))
			l->findings[kept++] = l->findings[i];
	l->count = kept;
}

static void begin_round(struct look_world *w);

static void on_again(uv_timer_t *timer)
{
	struct look_world *w = timer->data;

	w->first = take_ptr(w->look->findings);
	w->first_count = w->look->count;
	w->second = true;
	begin_round(w);
}

static void on_records(struct job *job)
{
	struct look_world *w = container_of(job, struct look_world, job);
	struct err e;

	if (job->failed) {
		e = job->e;
		return end(w, &e);
	}
	if (w->look->count == 0)
		return end(w, NULL);
	if (!w->second) {
		uv_timer_start(&w->timer, on_again, AGAIN_MS, 0);
		return;
	}
	keep_both(w);
	end(w, NULL);
}

static void on_images(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct look_world *w = data;

	(void)record, (void)fd;
	if (is_late(w))
		return;
	uv_timer_stop(&w->timer);
	if (why)
		return end(w, why);
	job_submit(w->look->reactor, NULL, &w->job, read_records, on_records);
}

static const struct node_call_events image_events = { .on_part = on_digest, .on_done = on_images };

static void on_inventory(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct look_world *w = data;
	struct node_image_ask ask = { .op = IMAGE_LIST };

	(void)record, (void)fd;
	if (is_late(w))
		return;
	if (why)
		return end(w, why);
	memcpy(ask.request, w->look->request, sizeof(ask.request));
	node_call(&w->look->reactor->node, NODE_IMAGE, &ask, -1, &image_events, w);
}

static const struct node_call_events inventory_events = {
	.on_part = on_fact,
	.on_done = on_inventory,
};

static void begin_round(struct look_world *w)
{
	struct look *l = w->look;
	struct node_cursor all = { .follow = 0 };

	w->fact_count = w->digest_count = 0;
	l->count = l->rows = 0;
	memcpy(all.request, l->request, sizeof(all.request));
	uv_timer_start(&w->timer, on_deadline, NODE_MS, 0);
	node_call(&l->reactor->node, NODE_INVENTORY, &all, -1, &inventory_events, w);
}

void look_begin(struct look *l, look_fn *done)
{
	struct look_world *w = xcalloc(1, sizeof(*w));

	w->look = l;
	l->world = w;
	l->done = done;
	uv_timer_init(&l->reactor->loop, &w->timer);
	w->timer.data = w;
	begin_round(w);
}

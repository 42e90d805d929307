#include "berthd/image/image-work.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/str.h"
#include "store/cell.h"

struct image_work {
	struct reactor *reactor;
	const struct image_work_sink *sink; /* NULL: it left */
	void *data;
	struct job job;
	char request[NODE_REQUEST_SIZE];
	struct image image;
	bool making; /* it is counted in berthd->image_works */
	bool unused; /* no other record needs the digest: the node may forget it */
};

static struct image_work *work_new(const struct image_begin *b, const char *source)
{
	struct image_work *w = xcalloc(1, sizeof(*w));

	w->reactor = b->reactor;
	w->sink = b->sink;
	w->data = b->data;
	(void)!str_copy(w->request, sizeof(w->request), b->request);
	(void)!str_copy(w->image.name, sizeof(w->image.name), b->name);
	(void)!str_copy(w->image.source, sizeof(w->image.source), source);
	return w;
}

static void work_free(struct image_work *w)
{
	if (w->making)
		w->reactor->berthd->image_works--;
	free(w);
}

static void work_end(struct image_work *w, const struct err *why)
{
	if (w->sink)
		w->sink->done(w->data, &w->image, why);
	work_free(w);
}

void image_work_leave(struct image_work *w)
{
	w->sink = NULL;
}

/* ---- it comes ---- */

static int record(struct job *job, struct store *s, struct err *e)
{
	struct image_work *w = container_of(job, struct image_work, job);
	const char *host = w->reactor->berthd->settings.host;

	/* The copy first: what has a name can be started somewhere. */
	if (store_image_copy(s, w->image.digest, host, true, e) < 0)
		return -1;
	crash_point("image.copy-recorded");
	if (store_image_put(s, &w->image, &w->image, e) < 0)
		return -1;
	crash_point("image.recorded");
	return 0;
}

static void on_recorded(struct job *job)
{
	work_end(container_of(job, struct image_work, job), job->failed ? &job->e : NULL);
}

static void on_progress(void *data, const union node_any *part)
{
	struct image_work *w = data;

	if (w->sink && w->sink->progress)
		w->sink->progress(w->data, &part->image);
}

static void on_made(void *data, const union node_any *record_, int *fd, const struct err *why)
{
	struct image_work *w = data;

	(void)fd;
	crash_point("image.made");
	if (why && why->code == ERR_LIMIT) { /* of berth-node: its pool has no room */
		struct err full = *why;

		err_reason(&full, "no_space", 507);
		return work_end(w, &full);
	}
	if (why)
		return work_end(w, why);
	memcpy(w->image.digest, record_->image.digest, sizeof(w->image.digest));
	w->image.bytes = (int64_t)record_->image.bytes;
	job_submit(w->reactor, NULL, &w->job, record, on_recorded);
}

static const struct node_call_events make_events = { .on_part = on_progress, .on_done = on_made };

static int make(const struct image_begin *b, struct node_image_ask *ask, int fd,
		struct image_work **ret, struct err *e)
{
	struct image_work *w = work_new(b, ask->op == IMAGE_PULL ? ask->source : "import");
	struct berthd *berthd = b->reactor->berthd;

	w->making = true;
	berthd->image_works++; /* first: what removes files looks at it last */
	if (berthd->image_tidying) {
		work_free(w);
		return err_set(e, ERR_BUSY, "images without a name are being removed: try again");
	}
	memcpy(ask->request, w->request, sizeof(w->request));
	node_call(&b->reactor->node, NODE_IMAGE, ask, fd, &make_events, w);
	*ret = w;
	return 0;
}

int image_pull(const struct image_begin *b, const char *reference, struct image_work **ret,
	       struct err *e)
{
	struct node_image_ask ask = { .op = IMAGE_PULL };

	if (!str_copy(ask.source, sizeof(ask.source), reference))
		return err_set(e, ERR_INVALID, "the reference is too long");
	return make(b, &ask, -1, ret, e);
}

int image_import(const struct image_begin *b, int fd, struct image_work **ret, struct err *e)
{
	struct node_image_ask ask = { .op = IMAGE_IMPORT };

	return make(b, &ask, fd, ret, e);
}

/* ---- it goes ---- */

static void on_files_removed(void *data, const union node_any *record_, int *fd,
			     const struct err *why)
{
	(void)record_, (void)fd;
	crash_point("image.files-removed");
	work_end(data, why);
}

static const struct node_call_events remove_events = { .on_done = on_files_removed };

static int remove_record(struct job *job, struct store *s, struct err *e)
{
	struct image_work *w = container_of(job, struct image_work, job);
	const char *host = w->reactor->berthd->settings.host;

	if (store_image_remove(s, w->image.name, &w->image, e) < 0)
		return -1;
	crash_point("image.removed");
	if (store_digest_is_unused(s, w->image.digest, &w->unused, e) < 0)
		return -1;
	return w->unused ? store_image_copy(s, w->image.digest, host, false, e) : 0;
}

static void on_record_removed(struct job *job)
{
	struct image_work *w = container_of(job, struct image_work, job);
	struct node_image_ask ask = { .op = IMAGE_REMOVE };

	if (job->failed)
		return work_end(w, &job->e);
	if (!w->unused) /* another name means the same files */
		return work_end(w, NULL);
	memcpy(ask.request, w->request, sizeof(w->request));
	memcpy(ask.digest, w->image.digest, sizeof(ask.digest));
	node_call(&w->reactor->node, NODE_IMAGE, &ask, -1, &remove_events, w);
}

struct image_work *image_remove(const struct image_begin *b)
{
	struct image_work *w = work_new(b, "");

	job_submit(w->reactor, NULL, &w->job, remove_record, on_record_removed);
	return w;
}

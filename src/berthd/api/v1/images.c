#include "berthd/api/v1/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berthd/runtime/berthd.h"
#include "berthd/runtime/file-writer.h"
#include "lib/crash.h"
#include "lib/file.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/cell.h"
#include "store/image.h"

#define IMPORT_MAX (64ULL << 30) /* bytes of one upload */

/* An image on its way in, or out. */
struct image_work {
	struct request *rq; /* NULL: the client is gone; the work goes on */
	struct reactor *reactor;
	struct job job;
	char request[REQUEST_ID_SIZE];
	struct image image;
	int fd; /* of an upload, an unnamed file */
	struct file_writer file;
	uint64_t received;
	bool ended;     /* the whole upload has come */
	bool making;    /* it is counted in berthd->image_works */
	bool streaming; /* the answer is a stream of events, and it has begun */
	bool unused;    /* no other record needs the digest: the node may forget it */
};

static void image_json(struct buf *out, const struct image *i)
{
	char created[TIME_TEXT_SIZE];

	time_text(i->created_ms, created);
	json_open(out, '{');
	json_str(out, "name", i->name);
	json_str(out, "digest", i->digest);
	json_int(out, "bytes", i->bytes);
	json_str(out, "source", i->source);
	json_str(out, "created_at", created);
	buf_adds(out, "}");
}

/* While a thread writes to its file it goes on without a request; on_written() frees it then. */
static void work_free(struct image_work *w)
{
	if (w->file.busy) {
		w->rq = NULL;
		return;
	}
	file_writer_close(&w->file);
	if (w->making)
		w->reactor->berthd->image_works--;
	close_fd(&w->fd);
	free(w);
}

static void on_gone(struct request *rq)
{
	struct image_work *w = rq->data;

	w->rq = NULL;
	request_end(rq, 499);
}

static struct image_work *work_new(struct request *rq)
{
	struct image_work *w = xcalloc(1, sizeof(*w));

	w->rq = rq;
	w->reactor = rq->reactor;
	w->fd = -1;
	memcpy(w->request, rq->id, sizeof(w->request));
	rq->data = w;
	rq->on_gone = on_gone;
	return w;
}

static void work_fail(struct image_work *w, const struct err *why)
{
	struct request *rq = w->rq;
	cleanup(buf_done) struct buf json = buf_make(4096);
	struct err e = *why;
	bool streaming = w->streaming;

	work_free(w);
	if (!rq)
		return;
	if (!streaming)
		return request_fail(rq, &e);
	request_error_json(rq, &e, &json);
	(void)request_event(rq, "error", &json);
	http_stream_end(take_ptr(rq->x));
	request_end(rq, err_http_status(e.code));
}

static void on_recorded(struct job *job)
{
	struct image_work *w = container_of(job, struct image_work, job);
	struct request *rq = w->rq;
	cleanup(buf_done) struct buf json = buf_make(4096);
	bool streaming = w->streaming;

	if (job->failed)
		return work_fail(w, &job->e);
	image_json(&json, &w->image);
	work_free(w);
	if (!rq)
		return;
	if (!streaming)
		return request_reply(rq, 201, &json);
	(void)request_event(rq, "image", &json);
	http_stream_end(take_ptr(rq->x));
	request_end(rq, 200);
}

static int record(struct job *job, struct store *s, struct err *e)
{
	struct image_work *w = container_of(job, struct image_work, job);

	/* The copy first: what has a name can be started somewhere. */
	if (store_image_copy(s, w->image.digest, w->reactor->berthd->settings.host, true, e) < 0)
		return -1;
	crash_point("image.copy-recorded");
	if (store_image_put(s, &w->image, &w->image, e) < 0)
		return -1;
	crash_point("image.recorded");
	return 0;
}

static void on_progress(void *data, const union node_any *part)
{
	struct image_work *w = data;
	cleanup(buf_done) struct buf json = buf_make(1024);

	if (!w->rq || !w->streaming)
		return;
	json_open(&json, '{');
	json_str(&json, "phase", part->image.phase);
	json_int(&json, "done", (int64_t)part->image.done);
	json_int(&json, "total", (int64_t)part->image.total);
	buf_adds(&json, "}");
	(void)request_event(w->rq, "progress", &json);
}

static void on_made(void *data, const union node_any *record_, int *fd, const struct err *why)
{
	struct image_work *w = data;

	(void)fd;
	crash_point("image.made");
	if (why && why->code == ERR_LIMIT) { /* of berth-node: its pool has no room */
		struct err full = *why;

		err_reason(&full, "no_space", 507);
		return work_fail(w, &full);
	}
	if (why)
		return work_fail(w, why);
	memcpy(w->image.digest, record_->image.digest, sizeof(w->image.digest));
	w->image.bytes = (int64_t)record_->image.bytes;
	job_submit(w->reactor, NULL, &w->job, record, on_recorded);
}

static const struct node_call_events make_events = { .on_part = on_progress, .on_done = on_made };

static void make(struct image_work *w, enum image_op op)
{
	struct node_image_ask ask = { .op = op };
	struct err e;

	w->making = true;
	w->reactor->berthd->image_works++; /* first: who tidies up looks at it last */
	if (w->reactor->berthd->image_tidying) {
		err_set(&e, ERR_BUSY, "images without a name are being removed: try again");
		return work_fail(w, &e);
	}
	memcpy(ask.request, w->request, sizeof(w->request));
	if (op == IMAGE_PULL)
		memcpy(ask.source, w->image.source, sizeof(ask.source));
	w->streaming = w->rq && w->rq->wants_events;
	if (w->streaming)
		request_stream(w->rq);
	node_call(&w->reactor->node, NODE_IMAGE, &ask, w->fd, &make_events, w);
}

struct pull_body {
	char reference[IMAGE_REFERENCE_SIZE];
	char name[IMAGE_NAME_SIZE];
};

static const struct json_field pull_fields[] = {
	JSON_FIELD_STR(pull_body, reference, .required = true),
	JSON_FIELD_STR(pull_body, name),
	JSON_FIELD_END
};

void images_pull(struct request *rq)
{
	struct pull_body body = { 0 };
	struct image_work *w;
	struct err e;

	if (json_read(buf_str(&rq->body), rq->body.len, pull_fields, &body, &e) < 0 ||
	    image_reference_check(body.reference, &e) < 0)
		return request_fail(rq, &e);
	if (!body.name[0] && !str_copy(body.name, sizeof(body.name), body.reference)) {
		err_set(&e, ERR_INVALID, "the reference is too long to be the image's name");
		err_fix(&e, "Give the image a \"name\" of its own.");
		return request_fail(rq, &e);
	}
	if (image_name_check(body.name, &e) < 0) {
		err_fix(&e, "Give the image a \"name\" of its own.");
		return request_fail(rq, &e);
	}
	w = work_new(rq);
	memcpy(w->image.source, body.reference, sizeof(w->image.source));
	memcpy(w->image.name, body.name, sizeof(w->image.name));
	make(w, IMAGE_PULL);
}

/* ---- upload ---- */

static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	struct request *rq = x->data;
	struct image_work *w = rq->data;
	struct err e;

	w->received += len;
	if (w->received > IMPORT_MAX) {
		err_set(&e, ERR_TOO_LARGE, "the upload has more than %llu bytes", IMPORT_MAX);
		return work_fail(w, &e);
	}
	if (file_writer_add(&w->file, data, len))
		http_body_pause(x);
}

static void uploaded(struct image_work *w)
{
	struct err e;

	if (lseek(w->fd, 0, SEEK_SET) < 0) {
		err_sys(&e, errno, "read the upload again");
		return work_fail(w, &e);
	}
	w->rq->on_gone = on_gone;
	crash_point("image.uploaded");
	make(w, IMAGE_IMPORT);
}

static void on_written(struct file_writer *file, int error)
{
	struct image_work *w = container_of(file, struct image_work, file);
	struct err e;

	if (!w->rq)
		return work_free(w);
	if (error != 0) {
		err_sys(&e, error, "keep the upload");
		err_fix(&e, "Make room in berthd's state directory.");
		return work_fail(w, &e);
	}
	if (!w->ended)
		return http_body_resume(w->rq->x);
	if (!file->busy)
		uploaded(w);
}

static void on_body_end(struct http_exchange *x)
{
	struct request *rq = x->data;
	struct image_work *w = rq->data;
	struct err e;

	if (w->received == 0) {
		err_set(&e, ERR_INVALID, "the body is empty, not a tar of a root filesystem");
		return work_fail(w, &e);
	}
	w->ended = true;
	if (!w->file.busy)
		uploaded(w);
}

/* Half an upload is of no use: the unnamed file goes with its descriptor. */
static void on_upload_gone(struct request *rq)
{
	work_free(rq->data);
	request_end(rq, 499);
}

void images_import(struct request *rq)
{
	struct image_work *w;
	struct err e;
	int fd;

	if (image_name_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	fd = open(rq->reactor->berthd->settings.state_dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0) {
		err_sys(&e, errno, "make a file for the upload");
		return request_fail(rq, &e);
	}
	w = work_new(rq);
	w->fd = fd;
	file_writer_open(&w->file, &w->reactor->loop, fd, on_written);
	memcpy(w->image.source, "import", 7);
	memcpy(w->image.name, rq->param, sizeof(w->image.name));
	rq->on_gone = on_upload_gone;
	http_body_read(rq->x, on_body, on_body_end);
}

/* ---- list and remove ---- */

static void list_row(const struct image *i, void *arg)
{
	image_json(arg, i);
}

int images_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	(void)rq;
	json_open(reply, '{');
	json_key(reply, "images");
	json_open(reply, '[');
	if (store_image_list(s, list_row, reply, e) < 0)
		return -1;
	buf_adds(reply, "]}");
	return 0;
}

static void removed(struct image_work *w)
{
	struct request *rq = w->rq;
	cleanup(buf_done) struct buf json = buf_make(1024);

	json_open(&json, '{');
	json_str(&json, "name", w->image.name);
	json_str(&json, "state", "gone");
	buf_adds(&json, "}");
	work_free(w);
	if (rq)
		request_reply(rq, 200, &json);
}

static void on_node_removed(void *data, const union node_any *record_, int *fd,
			    const struct err *why)
{
	(void)record_, (void)fd;
	crash_point("image.files-removed");
	if (why)
		return work_fail(data, why);
	removed(data);
}

static const struct node_call_events remove_events = { .on_done = on_node_removed };

static int remove_record(struct job *job, struct store *s, struct err *e)
{
	struct image_work *w = container_of(job, struct image_work, job);

	if (store_image_remove(s, w->image.name, &w->image, e) < 0)
		return -1;
	crash_point("image.removed");
	if (store_digest_is_unused(s, w->image.digest, &w->unused, e) < 0)
		return -1;
	return w->unused ? store_image_copy(s, w->image.digest,
					    w->reactor->berthd->settings.host, false, e)
			 : 0;
}

static void on_record_removed(struct job *job)
{
	struct image_work *w = container_of(job, struct image_work, job);
	struct node_image_ask ask = { .op = IMAGE_REMOVE };

	if (job->failed)
		return work_fail(w, &job->e);
	if (!w->unused) /* another name means the same files */
		return removed(w);
	memcpy(ask.request, w->request, sizeof(w->request));
	memcpy(ask.digest, w->image.digest, sizeof(ask.digest));
	node_call(&w->reactor->node, NODE_IMAGE, &ask, -1, &remove_events, w);
}

void images_remove(struct request *rq)
{
	struct image_work *w;
	struct err e;

	if (image_name_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	w = work_new(rq);
	memcpy(w->image.name, rq->param, sizeof(w->image.name));
	job_submit(w->reactor, NULL, &w->job, remove_record, on_record_removed);
}

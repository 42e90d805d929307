#include "berthd/api/v1/images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "berthd/image/image-work.h"
#include "berthd/runtime/berthd.h"
#include "berthd/runtime/file-writer.h"
#include "lib/crash.h"
#include "lib/file.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/image.h"

#define IMPORT_MAX (64ULL << 30) /* bytes of one upload */

/* A request for one image. */
struct image_request {
	struct request *rq;      /* NULL: the client is gone */
	struct image_work *work; /* NULL: not begun */
	int fd;                  /* of an upload, an unnamed file */
	struct file_writer file;
	uint64_t received;
	bool ended;     /* the whole upload has come */
	bool streaming; /* the answer is a stream of events, and it has begun */
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

/* While a thread writes to its file it stays, without a request; on_written() frees it then. */
static void done_with(struct image_request *q)
{
	if (q->file.busy) {
		q->rq = NULL;
		return;
	}
	file_writer_close(&q->file);
	close_fd(&q->fd);
	free(q);
}

static void on_gone(struct request *rq)
{
	struct image_request *q = rq->data;

	/* Half an upload is of no use; what has begun goes on. */
	if (q->work)
		image_work_leave(q->work);
	done_with(q);
	request_end(rq, 499);
}

static struct image_request *request_new(struct request *rq)
{
	struct image_request *q = xcalloc(1, sizeof(*q));

	q->rq = rq;
	q->fd = -1;
	rq->data = q;
	rq->on_gone = on_gone;
	return q;
}

static void fail(struct image_request *q, const struct err *why)
{
	struct request *rq = q->rq;
	cleanup(buf_done) struct buf json = buf_make(4096);
	struct err e = *why;
	bool streaming = q->streaming;

	done_with(q);
	if (!streaming)
		return request_fail(rq, &e);
	request_error_json(rq, &e, &json);
	(void)request_event(rq, "error", &json);
	http_stream_end(take_ptr(rq->x));
	request_end(rq, err_http_status(e.code));
}

static void on_progress(void *data, const struct node_image *part)
{
	struct image_request *q = data;
	cleanup(buf_done) struct buf json = buf_make(1024);

	if (!q->streaming)
		return;
	json_open(&json, '{');
	json_str(&json, "phase", part->phase);
	json_int(&json, "done", (int64_t)part->done);
	json_int(&json, "total", (int64_t)part->total);
	buf_adds(&json, "}");
	(void)request_event(q->rq, "progress", &json);
}

static void on_made(void *data, const struct image *image, const struct err *why)
{
	struct image_request *q = data;
	struct request *rq = q->rq;
	cleanup(buf_done) struct buf json = buf_make(4096);
	bool streaming = q->streaming;

	if (why)
		return fail(q, why);
	image_json(&json, image);
	done_with(q);
	if (!streaming)
		return request_reply(rq, 201, &json);
	(void)request_event(rq, "image", &json);
	http_stream_end(take_ptr(rq->x));
	request_end(rq, 200);
}

static const struct image_work_sink made_sink = { .progress = on_progress, .done = on_made };

static struct image_begin begin_of(struct image_request *q, const char *name,
				   const struct image_work_sink *sink)
{
	return (struct image_begin){ .reactor = q->rq->reactor,
				     .request = q->rq->id,
				     .name = name,
				     .sink = sink,
				     .data = q };
}

static void stream_if_asked(struct image_request *q)
{
	q->streaming = q->rq->wants_events;
	if (q->streaming)
		request_stream(q->rq);
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
	struct image_request *q;
	struct image_begin b;
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
	q = request_new(rq);
	b = begin_of(q, body.name, &made_sink);
	if (image_pull(&b, body.reference, &q->work, &e) < 0)
		return fail(q, &e);
	stream_if_asked(q);
}

/* ---- upload ---- */

static void on_body(struct http_exchange *x, const char *data, size_t len)
{
	struct request *rq = x->data;
	struct image_request *q = rq->data;
	struct err e;

	q->received += len;
	if (q->received > IMPORT_MAX) {
		err_set(&e, ERR_TOO_LARGE, "the upload has more than %llu bytes", IMPORT_MAX);
		return fail(q, &e);
	}
	if (file_writer_add(&q->file, data, len))
		http_body_pause(x);
}

static void uploaded(struct image_request *q)
{
	struct image_begin b = begin_of(q, q->rq->param, &made_sink);
	struct err e;

	if (lseek(q->fd, 0, SEEK_SET) < 0) {
		err_sys(&e, errno, "read the upload again");
		return fail(q, &e);
	}
	crash_point("image.uploaded");
	if (image_import(&b, q->fd, &q->work, &e) < 0)
		return fail(q, &e);
	stream_if_asked(q);
}

static void on_written(struct file_writer *file, int error)
{
	struct image_request *q = container_of(file, struct image_request, file);
	struct err e;

	if (!q->rq)
		return done_with(q);
	if (error != 0) {
		err_sys(&e, error, "keep the upload");
		err_fix(&e, "Make room in berthd's state directory.");
		return fail(q, &e);
	}
	if (!q->ended)
		return http_body_resume(q->rq->x);
	if (!file->busy)
		uploaded(q);
}

static void on_body_end(struct http_exchange *x)
{
	struct request *rq = x->data;
	struct image_request *q = rq->data;
	struct err e;

	if (q->received == 0) {
		err_set(&e, ERR_INVALID, "the body is empty, not a tar of a root filesystem");
		return fail(q, &e);
	}
	q->ended = true;
	if (!q->file.busy)
		uploaded(q);
}

void images_import(struct request *rq)
{
	struct image_request *q;
	struct err e;
	int fd;

	if (image_name_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	fd = open(rq->reactor->berthd->settings.state_dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (fd < 0) {
		err_sys(&e, errno, "make a file for the upload");
		return request_fail(rq, &e);
	}
	q = request_new(rq);
	q->fd = fd;
	file_writer_open(&q->file, &rq->reactor->loop, fd, on_written);
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

static void on_removed(void *data, const struct image *image, const struct err *why)
{
	struct image_request *q = data;
	struct request *rq = q->rq;
	cleanup(buf_done) struct buf json = buf_make(1024);

	if (why)
		return fail(q, why);
	json_open(&json, '{');
	json_str(&json, "name", image->name);
	json_str(&json, "state", "gone");
	buf_adds(&json, "}");
	done_with(q);
	request_reply(rq, 200, &json);
}

static const struct image_work_sink removed_sink = { .done = on_removed };

void images_remove(struct request *rq)
{
	struct image_request *q;
	struct image_begin b;
	struct err e;

	if (image_name_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	q = request_new(rq);
	b = begin_of(q, rq->param, &removed_sink);
	q->work = image_remove(&b);
}

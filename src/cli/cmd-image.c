/* berth image: what sandboxes are made from. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/list.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/sse.h"

#define BODY_MAX  (16UL * 1024)
#define IMAGE_MAX (64UL * 1024) /* one image's record */

/* A pull or an import under way. */
struct transfer {
	struct sse sse;
	struct progress progress;
	bool uploads;
	bool answered; /* the server has begun to speak */
	uint64_t size; /* of the file that goes up */
	struct buf image;
};

static void transfer_done(struct transfer *t)
{
	progress_end(&t->progress);
	sse_done(&t->sse);
	buf_done(&t->image);
}

static int on_event(void *arg, const char *name, const char *data, size_t len, struct err *e)
{
	struct transfer *t = arg;
	cleanup(json_free) struct json *tree = NULL;

	if (json_parse(data, len, &tree, e) < 0)
		return err_wrap(e, "the server's event");
	if (strcmp(name, "progress") == 0)
		progress_show(&t->progress, json_get_str(tree, "phase"),
			      (uint64_t)json_get_int(tree, "done"),
			      (uint64_t)json_get_int(tree, "total"));
	else if (strcmp(name, "error") == 0)
		return client_json_error(tree, e);
	else if (strcmp(name, "image") == 0)
		buf_add(&t->image, data, len);
	return 0;
}

static int on_stream(void *arg, const char *data, size_t len, struct err *e)
{
	struct transfer *t = arg;

	t->answered = true;
	return sse_feed(&t->sse, data, len, e);
}

static bool on_tick(void *arg, uint64_t sent)
{
	struct transfer *t = arg;

	if (t->uploads && !t->answered && sent)
		progress_show(&t->progress, "uploading", sent, t->size);
	return false;
}

static int show_image(const struct context *c, struct transfer *t, struct err *e)
{
	cleanup(json_free) struct json *tree = NULL;
	cleanup(buf_done) struct buf line = buf_make(BODY_MAX);
	char size[TABLE_SIZE_TEXT];

	progress_end(&t->progress);
	if (t->image.len == 0 || buf_overflowed(&t->image))
		return err_set(e, ERR_INTERNAL, "the server closed before the image was there");
	if (c->json) {
		buf_adds(&t->image, "\n");
		return say_out(buf_str(&t->image), t->image.len, e);
	}
	if (json_parse(buf_str(&t->image), t->image.len, &tree, e) < 0)
		return err_wrap(e, "the server's answer");
	table_size_text((uint64_t)json_get_int(tree, "bytes"), size);
	buf_addf(&line, "%s  %.19s  %s\n", json_get_str(tree, "name"), json_get_str(tree, "digest"),
		 size);
	return say_out(buf_str(&line), line.len, e);
}

static int transfer(const struct context *c, const char *path, struct fetch_request *q,
		    uint64_t size, struct err *e)
{
	cleanup(client_reply_done) struct client_reply reply = { 0 };
	cleanup(transfer_done) struct transfer t = { .progress = progress_make(), .size = size };

	sse_init(&t.sse);
	t.sse.on_event = on_event;
	t.sse.arg = &t;
	t.image = buf_make(IMAGE_MAX);
	t.uploads = q->upload;
	q->accept = "text/event-stream";
	q->sink = on_stream;
	q->tick = on_tick;
	q->arg = &t;
	if (client_fetch(c, path, q, &reply, e) < 0)
		return -1;
	if (reply.text.len)
		buf_add(&t.image, reply.text.data, reply.text.len);
	return show_image(c, &t, e);
}

struct pull_options {
	const char *name;
};

/* clang-format off */
static const struct option_row pull_options[] = {
	OPTION(OPTION_TEXT, pull_options, name, "name", 'n', "NAME", "call it this"),
	OPTION_ROWS_END
};
/* clang-format on */

static int pull(const struct context *c, const void *given, const struct strv *args, struct err *e)
{
	const struct pull_options *o = given;
	cleanup(buf_done) struct buf body = buf_make(BODY_MAX);
	struct fetch_request q = {
		.method = "POST",
		.content_type = "application/json",
		.body_fd = -1,
	};

	buf_adds(&body, "{");
	json_str(&body, "reference", args->items[0]);
	if (o->name)
		json_str(&body, "name", o->name);
	buf_adds(&body, "}");
	q.body = buf_str(&body);
	q.body_len = body.len;
	return transfer(c, "/v1/images", &q, 0, e);
}

const struct command cmd_image_pull = {
	.name = "image pull",
	.usage = "REFERENCE",
	.help = "Pull an image from a registry",
	.options = pull_options,
	.record_size = sizeof(struct pull_options),
	.min = 1,
	.max = 1,
	.run = pull,
};

static void image_path(struct buf *out, const char *name)
{
	buf_adds(out, "/v1/images/");
	fetch_escape(out, name);
}

static int not_opened(const char *path, struct err *e)
{
	err_sys(e, errno, "open %s", path);
	return err_fix(e, "Check the path: it is a file on this machine, or - for standard input.");
}

static int import(const struct context *c, const void *options, const struct strv *args,
		  struct err *e)
{
	cleanup(buf_done) struct buf path = buf_make(CLIENT_URL_MAX);
	cleanup(close_fd) int fd = -1;
	struct fetch_request q = {
		.method = "PUT",
		.content_type = "application/x-tar",
		.upload = true,
	};
	struct stat st = { 0 };

	(void)options;
	image_path(&path, args->items[0]);
	if (strcmp(args->items[1], "-") != 0) {
		fd = open(args->items[1], O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return not_opened(args->items[1], e);
	}
	q.body_fd = fd >= 0 ? fd : STDIN_FILENO;
	if (fstat(q.body_fd, &st) == 0 && S_ISREG(st.st_mode))
		q.body_size = (uint64_t)st.st_size;
	else if (S_ISDIR(st.st_mode)) {
		err_set(e, ERR_INVALID, "%s is a directory, not a tar", args->items[1]);
		return err_fix(e, "tar -C %s -c . | berth image import %s -", args->items[1],
			       args->items[0]);
	} else if (fd < 0 && isatty(STDIN_FILENO))
		return err_set(e, ERR_INVALID, "standard input is a terminal, not a tar");
	return transfer(c, buf_str(&path), &q, q.body_size, e);
}

const struct command cmd_image_import = {
	.name = "image import",
	.usage = "NAME FILE.tar|-",
	.help = "Make an image from a tar of a root filesystem",
	.details = "Or from an image with its layers, as docker save writes it. Plain, gzip, xz or "
		   "zstd.",
	.min = 2,
	.max = 2,
	.run = import,
};

static void add_row(struct table *t, const struct json *image)
{
	char size[TABLE_SIZE_TEXT];

	table_size_text((uint64_t)json_get_int(image, "bytes"), size);
	table_add(t, json_get_str(image, "name"));
	table_addf(t, "%.19s", json_get_str(image, "digest"));
	table_add(t, size);
	table_addf(t, "%.19s", json_get_str(image, "created_at"));
}

static const struct list images = { "images", { "NAME", "DIGEST", "SIZE", "CREATED" }, add_row };

static int ls(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options, (void)args;
	return list_show(c, "/v1/images", &images, e);
}

const struct command cmd_image_ls = {
	.name = "image ls",
	.usage = "",
	.help = "List the images",
	.run = ls,
};

static int rm(const struct context *c, const void *options, const struct strv *args, struct err *e)
{
	(void)options;
	return client_remove_each(c, "/v1/images/", args, e);
}

const struct command cmd_image_rm = {
	.name = "image rm",
	.usage = "NAME...",
	.help = "Remove images that no sandbox uses",
	.min = 1,
	.max = COMMAND_ARGS_ANY,
	.run = rm,
};

#include "berthd/exec/git-sweep.h"

#include <stdio.h>
#include <stdlib.h>

#include "berthd/exec/init-link.h"
#include "proto/files.h"

struct sweep {
	struct init_link *link;
	struct file_request ask;
	void (*done)(void *data);
	void *data;
};

static void sweep_end(struct sweep *s)
{
	init_link_close(s->link);
	s->done(s->data);
	free(s);
}

static void on_opened(void *data)
{
	struct sweep *s = data;
	cleanup(buf_done) struct buf record = buf_make(FRAME_PAYLOAD_MAX);

	file_request_encode(&record, &s->ask);
	(void)init_link_send(s->link, FRAME_FILE, record.data, record.len);
	init_link_expect(s->link);
}

/* Done, or failed: to the caller it does not matter which. */
static void on_frame(void *data, const struct frame *f)
{
	(void)f;
	sweep_end(data);
}

static bool on_bytes(void *data, const uint8_t *bytes, size_t len)
{
	(void)bytes, (void)len;
	sweep_end(data);
	return false;
}

static void on_failed(void *data, const struct err *why)
{
	(void)why;
	sweep_end(data);
}

static const struct init_link_events events = {
	.opened = on_opened,
	.frame = on_frame,
	.bytes = on_bytes,
	.failed = on_failed,
};

void git_sweep(const struct init_dial_ask *way, const char *path, void (*done)(void *data),
	       void *data)
{
	struct sweep *s = xcalloc(1, sizeof(*s));

	s->done = done;
	s->data = data;
	s->ask = (struct file_request){ .verb = FILE_REMOVE, .flags = FILE_RECURSIVE };
	snprintf(s->ask.path, sizeof(s->ask.path), "%s", path);
	s->link = init_link_new(way->reactor, &events, s);
	init_link_open(s->link, way);
}

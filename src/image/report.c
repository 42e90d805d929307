#include "image/report.h"

#include <stdio.h>

#include "lib/file.h"
#include "lib/time.h"
#include "proto/node.h"
#include "proto/writer.h"

#define PROGRESS_MS 200

static void say(const struct buf *packet)
{
	cleanup(buf_done) struct buf wire = buf_make(NODE_PACKET_MAX + 8);

	writer_u32(&wire, (uint32_t)packet->len);
	buf_add(&wire, packet->data, packet->len);
	if (write_all(REPORT_FD, wire.data, wire.len) < 0)
		return; /* there is no reader; our parent sees how we end */
}

static void say_image(enum node_kind kind, const struct node_image *image)
{
	cleanup(buf_done) struct buf packet = buf_make(NODE_PACKET_MAX);

	node_encode(&packet, NODE_IMAGE, kind, 0, image);
	say(&packet);
}

void report_progress(struct report *r, const char *phase, uint64_t done, uint64_t total)
{
	struct node_image image = { .done = done, .total = total };
	uint64_t now = time_mono_ms();

	if (now - r->last_ms < PROGRESS_MS)
		return;
	r->last_ms = now;
	snprintf(image.phase, sizeof(image.phase), "%s", phase);
	say_image(NODE_PART, &image);
}

void report_done(const char *digest, uint64_t bytes)
{
	struct node_image image = { .bytes = bytes };

	snprintf(image.digest, sizeof(image.digest), "%s", digest);
	say_image(NODE_REPLY, &image);
}

void report_error(const struct err *why)
{
	cleanup(buf_done) struct buf packet = buf_make(NODE_PACKET_MAX);

	node_encode_error(&packet, NODE_IMAGE, 0, why);
	say(&packet);
}

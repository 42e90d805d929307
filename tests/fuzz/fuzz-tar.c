/* However an archive is cut into pieces, the same is read from it; no path leads out. */
#include <stdlib.h>
#include <string.h>

#include "lib/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	struct buf log;
	uint64_t left;
};

static int on_entry(void *data, const struct tar_entry *x, struct err *e)
{
	struct seen *s = data;
	char below[TAR_PATH_SIZE];

	s->left = x->size;
	buf_addf(&s->log, "%c %o %llu ", (int)x->type, x->mode, (unsigned long long)x->size);
	buf_adds(&s->log, x->path);
	buf_adds(&s->log, x->target);
	if (tar_path_below(x->path, below, e) < 0)
		return 0;
	if (below[0] == '/' || strcmp(below, "..") == 0 || strncmp(below, "../", 3) == 0 ||
	    strstr(below, "/../"))
		abort();
	return 0;
}

static int on_bytes(void *data, const void *bytes, size_t len, struct err *e)
{
	struct seen *s = data;

	(void)e;
	if (len > s->left)
		abort();
	s->left -= len;
	buf_add(&s->log, bytes, len);
	return 0;
}

static int on_entry_end(void *data, struct err *e)
{
	struct seen *s = data;

	(void)e;
	if (s->left != 0)
		abort();
	buf_adds(&s->log, "end\n");
	return 0;
}

static const struct tar_events events = { on_entry, on_bytes, on_entry_end };

static int read_in_pieces(const uint8_t *data, size_t size, size_t piece, struct seen *s)
{
	struct tar_reader r;
	struct err e;
	int n = 0;

	tar_reader_init(&r, &events, s);
	for (size_t at = 0; n == 0 && at < size; at += piece)
		n = tar_reader_feed(&r, data + at, size - at < piece ? size - at : piece, &e);
	if (n == 0)
		n = tar_reader_end(&r, &e);
	tar_reader_done(&r);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen a = { .log = buf_make(1 << 22) }, b = { .log = buf_make(1 << 22) };
	int whole = read_in_pieces(data, size, size + 1, &a);
	int pieces = read_in_pieces(data, size, 7, &b);

	if (whole != pieces || (whole == 0 && strcmp(buf_str(&a.log), buf_str(&b.log)) != 0))
		abort();
	buf_done(&a.log);
	buf_done(&b.log);
	return 0;
}

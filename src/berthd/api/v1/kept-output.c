#include "berthd/api/v1/kept-output.h"

#include <stdatomic.h>
#include <stdio.h>

#include "berthd/runtime/berthd.h"
#include "lib/json.h"
#include "lib/str.h"

void kept_output_init(struct kept_output *k, struct berthd *b, const char *owner)
{
	k->berthd = b;
	k->share = worker_share(owner);
	for (int i = 0; i < 2; i++)
		k->out[i] = buf_make(KEPT_STREAM_MAX + 1);
}

static void give_back(struct kept_output *k, size_t n)
{
	k->berthd->kept -= n;
	k->berthd->kept_shares[k->share] -= n;
}

void kept_output_done(struct kept_output *k)
{
	give_back(k, k->out[0].len + k->out[1].len);
	buf_done(&k->out[0]);
	buf_done(&k->out[1]);
}

/* Taken first and looked at then: loops that take at the same time never keep too much. */
static bool take(struct kept_output *k, size_t n)
{
	size_t all = atomic_fetch_add(&k->berthd->kept, n) + n;
	size_t owner = atomic_fetch_add(&k->berthd->kept_shares[k->share], n) + n;

	if (all <= KEPT_ALL_MAX && owner <= KEPT_OWNER_MAX)
		return true;
	give_back(k, n);
	return false;
}

void kept_output_add(struct kept_output *k, int stream, uint64_t offset, const void *data,
		     size_t len)
{
	struct buf *out = &k->out[stream];
	size_t left = KEPT_STREAM_MAX - out->len;
	size_t n = len < left ? len : left;

	/* What is kept is the beginning, without holes. */
	if (n > 0 && out->len == offset && take(k, n))
		buf_add(out, data, n);
}

void stream_json(struct buf *json, const char *name, const struct buf *out, bool cut)
{
	char key[32];
	size_t whole = utf8_valid_prefix(buf_str(out), out->len);

	/* A character cut by our own limit is no reason to call it binary. */
	if (whole == out->len || (cut && utf8_is_cut(out->data + whole, out->len - whole))) {
		json_key(json, name);
		json_add_text(json, buf_str(out), whole);
		return;
	}
	snprintf(key, sizeof(key), "%s_base64", name);
	json_key(json, key);
	buf_adds(json, "\"");
	base64_add(json, out->data, out->len);
	buf_adds(json, "\"");
}

void kept_output_json(struct buf *json, const struct kept_output *k, const uint64_t bytes[2])
{
	static const char *const names[] = { "stdout", "stderr" };
	char key[32];

	for (int i = 0; i < 2; i++) {
		bool cut = bytes[i] > k->out[i].len;

		stream_json(json, names[i], &k->out[i], cut);
		snprintf(key, sizeof(key), "%s_truncated", names[i]);
		if (cut)
			json_bool(json, key, true);
	}
}

/* Output kept for an answer: the beginning of each stream, within three limits. */
#include "berthd/api/v1/kept-output.h"

#include <stdlib.h>

#include "berthd/runtime/berthd.h"
#include "test.h"

#define PIECE ((size_t)1024 * 1024)

static char piece[PIECE];

static struct berthd *make(void)
{
	return calloc(1, sizeof(struct berthd));
}

/* As much as there is place for. */
static void fill(struct kept_output *k)
{
	for (int stream = 0; stream < 2; stream++)
		for (size_t at = 0; at < KEPT_STREAM_MAX; at += PIECE)
			kept_output_add(k, stream, at, piece, PIECE);
}

TEST(the_beginning_is_kept_without_holes)
{
	struct kept_output k;
	struct berthd *b = make();

	kept_output_init(&k, b, "a");
	kept_output_add(&k, 0, 0, "ab", 2);
	kept_output_add(&k, 0, 2, "cd", 2);
	kept_output_add(&k, 0, 6, "gh", 2); /* "ef" did not come */
	kept_output_add(&k, 1, 0, "xy", 2);
	CHECK_STR(buf_str(&k.out[0]), "abcd");
	CHECK_STR(buf_str(&k.out[1]), "xy");
	CHECK_INT(b->kept, 6);
	kept_output_done(&k);
	CHECK_INT(b->kept, 0);
	CHECK_INT(b->kept_shares[worker_share("a")], 0);
	free(b);
}

TEST(a_stream_has_a_limit_of_its_own)
{
	struct kept_output k;
	struct berthd *b = make();

	kept_output_init(&k, b, "a");
	fill(&k);
	kept_output_add(&k, 0, KEPT_STREAM_MAX, "more", 4);
	CHECK_INT(k.out[0].len, KEPT_STREAM_MAX);
	CHECK_INT(b->kept, 2 * KEPT_STREAM_MAX);
	kept_output_done(&k);
	free(b);
}

/* One owner's answers under way cost another owner nothing. */
TEST(an_owner_has_a_limit_of_its_own)
{
	static struct kept_output many[KEPT_OWNER_MAX / (2 * KEPT_STREAM_MAX) + 2], other;
	struct berthd *b = make();

	CHECK(worker_share("a") != worker_share("b"));
	for (size_t i = 0; i < array_len(many); i++) {
		kept_output_init(&many[i], b, "a");
		fill(&many[i]);
	}
	CHECK_INT(b->kept, KEPT_OWNER_MAX);
	kept_output_init(&other, b, "b");
	fill(&other);
	CHECK_INT(other.out[0].len + other.out[1].len, 2 * KEPT_STREAM_MAX);
	for (size_t i = 0; i < array_len(many); i++)
		kept_output_done(&many[i]);
	CHECK_INT(b->kept, 2 * KEPT_STREAM_MAX);
	kept_output_done(&other);
	free(b);
}

TEST(what_was_cut_is_said)
{
	cleanup(buf_done) struct buf json = buf_make(1024);
	struct kept_output k;
	struct berthd *b = make();

	kept_output_init(&k, b, NULL);
	kept_output_add(&k, 0, 0, "a\xc3", 2);
	kept_output_add(&k, 1, 0, "\xff", 1);
	buf_adds(&json, "{");
	kept_output_json(&json, &k, (uint64_t[]){ 5, 1 });
	CHECK_STR(buf_str(&json),
		  "{\"stdout\":\"a\",\"stdout_truncated\":true,\"stderr_base64\":\"/w==\"");
	kept_output_done(&k);
	free(b);
}

/* A pass is for one request, for a minute, once. */
#include "berthd/cluster/peer-token-seen.h"

#include "test.h"

#define NOW UINT64_C(1800000000000)

static const struct peer_token_request about = { "secret", "POST", "/v1/x", "a=b" };

static struct peer_token shown(uint64_t at_ms, uint64_t nonce)
{
	struct peer_token p = { .from = "h1",
				.to = "h2",
				.request = "rq_1",
				.role = ROLE_USER,
				.at_ms = at_ms,
				.nonce = nonce };

	return p;
}

TEST(time_and_nonce_are_part_of_what_is_proven)
{
	cleanup(buf_done) struct buf text = buf_make(PASS_TEXT_MAX);
	struct peer_token p = shown(NOW, 77), got;
	char *at;
	struct err e;

	peer_token_write(&p, &about, &text);
	CHECK_OK(peer_token_read(buf_str(&text), &about, &got, &e), &e);
	CHECK(got.at_ms == NOW && got.nonce == 77);
	at = strstr(text.data, ";77;");
	CHECK(at);
	at[1] = '8';
	CHECK_ERR(peer_token_read(buf_str(&text), &about, &got, &e), &e, ERR_DENIED);
	at[1] = '7';
	at = strstr(text.data, ";1800000000000;");
	CHECK(at);
	at[2] = '9';
	CHECK_ERR(peer_token_read(buf_str(&text), &about, &got, &e), &e, ERR_DENIED);
}

TEST(a_pass_is_taken_once_and_only_in_its_time)
{
	struct peer_token_seen s;
	struct peer_token p = shown(NOW, 77), other = shown(NOW, 78);
	struct peer_token ahead = shown(NOW + PASS_VALID_MS, 79);
	struct err e;

	peer_token_seen_init(&s, 0);
	CHECK_OK(peer_token_seen_take(&s, &p, NOW, &e), &e);
	CHECK_ERR(peer_token_seen_take(&s, &p, NOW, &e), &e, ERR_DENIED);
	CHECK_OK(peer_token_seen_take(&s, &other, NOW + PASS_VALID_MS, &e), &e);
	CHECK_ERR(peer_token_seen_take(&s, &p, NOW + PASS_VALID_MS, &e), &e, ERR_DENIED);
	CHECK_ERR(peer_token_seen_take(&s, &p, NOW + PASS_VALID_MS + 1, &e), &e, ERR_DENIED);
	p.nonce = 80;
	CHECK_ERR(peer_token_seen_take(&s, &p, NOW - PASS_VALID_MS - 1, &e), &e, ERR_DENIED);
	/* One that is ahead is remembered as long as it is good. */
	CHECK_OK(peer_token_seen_take(&s, &ahead, NOW, &e), &e);
	for (uint64_t ms = 0; ms <= 2 * PASS_VALID_MS; ms += 1000) {
		struct peer_token more = shown(NOW + ms, 1000 + ms);

		CHECK_OK(peer_token_seen_take(&s, &more, NOW + ms, &e), &e);
		CHECK_ERR(peer_token_seen_take(&s, &ahead, NOW + ms, &e), &e, ERR_DENIED);
	}
	peer_token_seen_done(&s);
}

TEST(what_is_remembered_has_a_bound_and_is_forgotten)
{
	struct peer_token_seen s;
	struct peer_token p;
	struct err e;

	peer_token_seen_init(&s, 0);
	for (uint64_t i = 1; i <= PASS_SEEN_MAX; i++) {
		p = shown(NOW, i * 977);
		CHECK_OK(peer_token_seen_take(&s, &p, NOW, &e), &e);
	}
	p = shown(NOW, 5);
	CHECK_ERR(peer_token_seen_take(&s, &p, NOW, &e), &e, ERR_BUSY);
	p = shown(NOW, 977);
	CHECK_ERR(peer_token_seen_take(&s, &p, NOW, &e), &e, ERR_DENIED);
	p = shown(NOW + 2 * PASS_VALID_MS, 5);
	CHECK_OK(peer_token_seen_take(&s, &p, NOW + 2 * PASS_VALID_MS, &e), &e);
	p = shown(NOW + 4 * PASS_VALID_MS, 6);
	CHECK_OK(peer_token_seen_take(&s, &p, NOW + 4 * PASS_VALID_MS, &e), &e);
	CHECK_INT(s.now.count + s.before.count, 2);
	peer_token_seen_done(&s);
}

/* The nonces of the berthd before it are gone: what may be among them is not taken. */
TEST(a_pass_from_before_the_start_is_not_taken)
{
	struct peer_token before = shown(NOW - 1, 5), after = shown(NOW, 5);
	struct peer_token_seen s;
	struct err e;

	peer_token_seen_init(&s, NOW);
	CHECK_ERR(peer_token_seen_take(&s, &before, NOW + 1, &e), &e, ERR_BUSY);
	CHECK_STR(e.fix, "Send the request again: it gets a new pass.");
	CHECK_OK(peer_token_seen_take(&s, &after, NOW + 1, &e), &e);
	peer_token_seen_done(&s);
}

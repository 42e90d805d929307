#include "berthd/front/key-cache.h"

#include <stdio.h>
#include <string.h>

#include "lib/hash.h"
#include "test.h"

static void hash_of(int n, char out[HASH_HEX_SIZE])
{
	char text[16];

	snprintf(text, sizeof(text), "%d", n);
	hash_hex(text, strlen(text), out);
}

TEST(a_key_is_known_for_a_while_and_then_asked_for_again)
{
	struct key k = { .id = "key_a" }, got = { 0 };
	char hash[HASH_HEX_SIZE];
	struct key_lookup l = { 0 };
	struct key_cache c = { 0 };

	key_cache_init(&c);
	hash_of(1, hash);
	CHECK_INT(key_cache_get(&c, hash, 1000, &got, &l), KEY_CACHE_ASK);
	key_cache_found(&c, &l, hash, 1000, &k, false);
	CHECK_INT(key_cache_get(&c, hash, 1000 + KEY_CACHE_MS - 1, &got, &l), KEY_CACHE_KNOWN);
	CHECK_STR(got.id, "key_a");
	CHECK_INT(key_cache_get(&c, hash, 1000 + KEY_CACHE_MS, &got, &l), KEY_CACHE_ASK);
	key_cache_done(&c);
}

TEST(a_key_that_is_none_is_asked_for_once)
{
	char hash[HASH_HEX_SIZE];
	struct key_lookup l = { 0 };
	struct key_cache c = { 0 };
	struct key got;

	key_cache_init(&c);
	hash_of(1, hash);
	CHECK_INT(key_cache_get(&c, hash, 1000, &got, &l), KEY_CACHE_ASK);
	key_cache_found(&c, &l, hash, 1000, NULL, true);
	CHECK_INT(key_cache_get(&c, hash, 1001, &got, &l), KEY_CACHE_UNKNOWN);
	CHECK_INT(key_cache_get(&c, hash, 1000 + KEY_CACHE_MS, &got, &l), KEY_CACHE_ASK);
	key_cache_found(&c, &l, hash, 9000, NULL, false); /* the database did not answer */
	CHECK_INT(key_cache_get(&c, hash, 9001, &got, &l), KEY_CACHE_ASK);
	key_cache_done(&c);
}

TEST(what_was_read_before_a_revocation_is_not_kept)
{
	struct key k = { .id = "key_a" }, got;
	char hash[HASH_HEX_SIZE];
	struct key_lookup l = { 0 };
	struct key_cache c = { 0 };

	key_cache_init(&c);
	hash_of(1, hash);
	CHECK_INT(key_cache_get(&c, hash, 1000, &got, &l), KEY_CACHE_ASK);
	key_cache_clear(&c);
	key_cache_found(&c, &l, hash, 1000, &k, false);
	CHECK_INT(key_cache_get(&c, hash, 1001, &got, &l), KEY_CACHE_ASK);
	key_cache_done(&c);
}

TEST(a_source_is_an_address_or_a_network_of_ipv6)
{
	CHECK(key_source("192.0.2.1") != key_source("192.0.2.2"));
	CHECK_INT(key_source("2001:db8::1"), key_source("2001:db8::ffff:0:2"));
	CHECK(key_source("2001:db8::1") != key_source("2001:db8:0:1::1"));
	CHECK(key_source("::ffff:192.0.2.1") != key_source("::ffff:192.0.2.2"));
	CHECK(key_source("") < KEY_SOURCES);
}

/* Strangers of one source stand in a line of their own; a key known before is not in it. */
TEST(strangers_are_asked_for_so_many_at_a_time)
{
	struct key k = { .id = "key_a" }, got;
	struct key_lookup l = { 0 }, other = { .source = 1 }, lookups[KEY_LOOKUPS_MAX] = { 0 };
	char hash[HASH_HEX_SIZE], friend[HASH_HEX_SIZE];
	struct key_cache c = { 0 };

	key_cache_init(&c);
	hash_of(-1, friend);
	CHECK_INT(key_cache_get(&c, friend, 0, &got, &l), KEY_CACHE_ASK);
	key_cache_found(&c, &l, friend, 0, &k, false);
	for (int i = 0; i < KEY_LOOKUPS_MAX; i++) {
		hash_of(i, hash);
		CHECK_INT(key_cache_get(&c, hash, 9000, &got, &lookups[i]), KEY_CACHE_ASK);
	}
	hash_of(KEY_LOOKUPS_MAX, hash);
	CHECK_INT(key_cache_get(&c, hash, 9000, &got, &l), KEY_CACHE_BUSY);
	CHECK_INT(key_cache_get(&c, hash, 9000, &got, &other), KEY_CACHE_ASK);
	CHECK_INT(key_cache_get(&c, friend, 9000, &got, &l), KEY_CACHE_ASK);
	hash_of(0, hash);
	key_cache_found(&c, &lookups[0], hash, 9000, NULL, true);
	hash_of(KEY_LOOKUPS_MAX, hash);
	CHECK_INT(key_cache_get(&c, hash, 9000, &got, &l), KEY_CACHE_ASK);
	key_cache_done(&c);
}

#include "core/identity.h"

#include "test.h"

/* Computed by python3's hashlib from the texts of the requirements, not by this code. */
TEST(the_golden_vectors_stand)
{
	/* clang-format off */
	static const struct {
		struct identity id;
		const char *key;
	} golden[] = {
		{ { "9f1c", "u1", NULL, NULL },
		  "org-376e2401b05807bd242529baae5a757341a3a7aab060c233" },
		{ { "org_1", "user_9", NULL, NULL },
		  "org-d9347a2724104256649372b80fc3297626392678739b572a" },
		{ { NULL, "u1", NULL, NULL },
		  "usr-7de23859bb7556d090f0b74d13bbea2969eddc0c91581cce" },
		{ { "9f1c", "u1", "b7", NULL },
		  "bot-4f93908011113be41a901347a89b7daf98fd172ee0d3d83c" },
		{ { "", "u1", "b7", NULL },
		  "ubt-3898967847132cd2be2e2c098193e8065da29fd03b14c3ec" },
		{ { "a__b", "c", NULL, NULL },
		  "org-e25484f7b5e2ffdb32c182c27f6648861b80ff3ff52aa33b" },
		{ { "a", "b__c", "", NULL },
		  "org-74d05db60bbf329e4c179d7a1bee62416137f5c561d8ce22" },
		{ { NULL, "_u", "b", NULL },
		  "ubt-0486ced415a7981ca4e6855410e4e91032acbef7128ee1c4" },
	};
	/* clang-format on */
	struct identity session = { .org = "o", .user = "u", .session = "sess_42" };
	char key[IDENTITY_KEY_SIZE];
	struct err e;

	for (size_t i = 0; i < array_len(golden); i++) {
		CHECK_OK(identity_shared_key(&golden[i].id, key, &e), &e);
		CHECK_STR(key, golden[i].key);
		CHECK_INT((long long)strlen(key), IDENTITY_KEY_LEN);
	}
	CHECK_OK(identity_session_key(&session, key, &e), &e);
	CHECK_STR(key, "ses-f51d77248421550480552a347a6b0d6253801495eb5b673f");
}

TEST(the_legacy_form_is_the_joined_text)
{
	static const struct {
		struct identity id;
		const char *key;
	} golden[] = {
		{ { .org = "9f1c", .user = "u1" }, "9f1c__u1" },
		{ { .user = "u1" }, "user:u1__u1" },
		{ { .org = "9f1c", .user = "u1", .bot = "b7" }, "9f1c__u1__bot:b7" },
		{ { .user = "u1", .bot = "b7" }, "user:u1__u1__bot:b7" },
	};
	char key[IDENTITY_LEGACY_SIZE];
	enum identity_kind kind;
	struct err e;

	for (size_t i = 0; i < array_len(golden); i++) {
		CHECK_OK(identity_legacy_key(&golden[i].id, key, &e), &e);
		CHECK_STR(key, golden[i].key);
		CHECK_OK(identity_key_check(key, &kind, &e), &e);
		CHECK_INT(kind, IDENTITY_LEGACY);
	}
}

/* Every tuple of parts that are made to be confused has a key of its own. */
TEST(no_two_tuples_share_a_key)
{
	static const char *const words[] = {
		"a",
		"_",
		"__",
		"a__b",
		"b",
		"a_",
		"_b",
		"b__bot:c",
		"bot:c",
		"c",
		"user:a",
		"user:a__a",
		"v2:1:a,",
		"v2:3:org,1:a,",
		"a__b__c",
		"___",
		"b__c",
	};
	enum {
		N = array_len(words) + 1,
		MAX = (int)(N * array_len(words) * N)
	};
	static char keys[MAX][IDENTITY_KEY_SIZE];
	size_t n = 0;
	struct err e;

	for (size_t i = 0; i < N * array_len(words) * N; i++) {
		size_t o = i % N, b = i / N % N, u = i / N / N;
		struct identity id = { .org = o ? words[o - 1] : NULL,
				       .user = words[u],
				       .bot = b ? words[b - 1] : NULL };

		CHECK_OK(identity_shared_key(&id, keys[n++], &e), &e);
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			if (memcmp(keys[i], keys[k], IDENTITY_KEY_SIZE) == 0)
				test_fail(__FILE__, __LINE__, "%zu and %zu: %s", i, k, keys[i]);
}

TEST(a_personal_user_is_not_an_org_of_that_name)
{
	struct identity person = { .user = "x" }, org = { .org = "user:x", .user = "x" };
	char a[IDENTITY_KEY_SIZE], b[IDENTITY_KEY_SIZE];
	struct err e;

	CHECK_OK(identity_shared_key(&person, a, &e), &e);
	CHECK_OK(identity_shared_key(&org, b, &e), &e);
	CHECK(strcmp(a, b) != 0);
}

TEST(what_is_missing_long_or_invisible_is_refused)
{
	char key[IDENTITY_KEY_SIZE] = "as it was", longest[IDENTITY_PART_MAX + 2];
	struct identity none = { 0 }, no_user = { .org = "o" };
	struct identity bad = { .user = "a b" }, big = { .user = longest, .org = longest };
	struct err e;

	memset(longest, 'x', sizeof(longest));
	longest[IDENTITY_PART_MAX + 1] = 0;
	CHECK_ERR(identity_session_key(&none, key, &e), &e, ERR_INVALID);
	CHECK_ERR(identity_shared_key(&no_user, key, &e), &e, ERR_INVALID);
	CHECK_ERR(identity_shared_key(&bad, key, &e), &e, ERR_INVALID);
	CHECK_ERR(identity_shared_key(&big, key, &e), &e, ERR_INVALID);
	CHECK_STR(key, "as it was");
	longest[IDENTITY_PART_MAX] = 0;
	big.bot = longest;
	CHECK_OK(identity_shared_key(&big, key, &e), &e);
}

TEST(a_key_is_known_by_its_shape_or_not_at_all)
{
	static const char hex[] = "0123456789abcdef0123456789abcdef0123456789abcdef";
	static const char *const bad[] = {
		"",
		"x",
		"org-",
		"__",
		"a__",
		"__a",
		"a b__c",
		"sb_c1_0123",
		"org_x",
		"a__b\n",
		"org-0123456789ABCDEF0123456789abcdef0123456789abcdef",
		"foo-0123456789abcdef0123456789abcdef0123456789abcdef",
		"org-0123456789abcdef0123456789abcdef0123456789abcdef0",
		"org-0123456789abcdef0123456789abcdef0123456789abcde",
	};
	static const char *const prefixes[] = { "org", "usr", "bot", "ubt", "ses" };
	enum identity_kind kind = IDENTITY_NONE;
	char key[80];
	struct err e;

	for (int k = IDENTITY_ORG; k <= IDENTITY_SES; k++) {
		snprintf(key, sizeof(key), "%s-%s", prefixes[k - IDENTITY_ORG], hex);
		CHECK_OK(identity_key_check(key, &kind, &e), &e);
		CHECK_INT(kind, k);
	}
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(identity_key_check(bad[i], &kind, &e), &e, ERR_INVALID);
	CHECK_INT(kind, IDENTITY_SES); /* left as it was */
}

TEST(names_at_their_limits)
{
	static const char *const good[] = { "a", "my-box", "A.b_c", "0", "wwww",
					    "api2", "a--b", "...", ".a", "a." };
	static const char *const bad[] = { "", ".", "..", "-", "-a", "a-", "www", "api", "admin",
					   "root", "system", "cloudflare", "workers", "API", "a/b",
					   "a b", "\xc3\xa9" };
	char name[65];
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_OK(identity_name_check(good[i], &e), &e);
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(identity_name_check(bad[i], &e), &e, ERR_INVALID);
	memset(name, 'n', sizeof(name));
	name[64] = 0;
	CHECK_ERR(identity_name_check(name, &e), &e, ERR_INVALID);
	CHECK_ERR(identity_name_check("A b", &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, ", not \"A b\""));
	CHECK_ERR(identity_name_check("A\a", &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, ", not \"...\""));
	name[63] = 0;
	CHECK_OK(identity_name_check(name, &e), &e);
}

TEST(the_smallest_keys_of_before)
{
	static const char *const good[] = { "a__b", "a__~", "!__!", "a____" };
	static const char *const bad[] = { "a__", "__ab", "a_b_", "a__ ", "a__\x7f", "a b__c" };
	enum identity_kind kind;
	struct err e;

	for (size_t i = 0; i < array_len(good); i++) {
		CHECK_OK(identity_key_check(good[i], &kind, &e), &e);
		CHECK_INT(kind, IDENTITY_LEGACY);
	}
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(identity_key_check(bad[i], &kind, &e), &e, ERR_INVALID);
}

TEST(a_key_of_an_unknown_kind_is_none)
{
	char key[IDENTITY_KEY_LEN + 1];
	enum identity_kind kind;
	struct err e;

	memset(key, '0', sizeof(key));
	key[IDENTITY_KEY_LEN] = '\0';
	memcpy(key, "orx-", 4);
	CHECK_ERR(identity_key_check(key, &kind, &e), &e, ERR_INVALID);
	memcpy(key, "-or-", 4);
	CHECK_ERR(identity_key_check(key, &kind, &e), &e, ERR_INVALID);
	memcpy(key, "org-", 4);
	CHECK_OK(identity_key_check(key, &kind, &e), &e);
	CHECK_INT(kind, IDENTITY_ORG);
	key[20] = 'g';
	CHECK_ERR(identity_key_check(key, &kind, &e), &e, ERR_INVALID);
}

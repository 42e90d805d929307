#include "core/sandbox-asked.h"

#include "lib/errno-map.h"
#include "test.h"

#define ID "sb_c1_0123456789abcdefghuv"

/* clang-format off */
#define ALLOW(rules, more) "{\"mode\":\"allow\",\"rules\":[" rules "]" more "}"
#define A                  "{\"host\":\"a.example.com\"}"
#define B                  "{\"host\":\"b.example.com\",\"ports\":[443]}"
#define SECRETS            ",\"secrets\":[\"s\",\"t\"]"
#define POLICY             ALLOW(A "," B, SECRETS)
/* clang-format on */

/* One that is there, and a request that says nothing but its name and image. */
struct world {
	struct sandbox sb;
	struct sandbox_asked asked;
	const char *network; /* its policy */
};

static struct world world(void)
{
	struct world w = { .network = POLICY };
	struct sandbox *sb = &w.sb;
	struct sandbox_spec *spec = &w.asked.spec;

	snprintf(sb->id, sizeof(sb->id), ID);
	snprintf(sb->image, sizeof(sb->image), "base");
	snprintf(sb->runtime, sizeof(sb->runtime), "crun");
	snprintf(sb->profile, sizeof(sb->profile), "small");
	snprintf(sb->name, sizeof(sb->name), "web");
	snprintf(sb->labels, sizeof(sb->labels), "{\"a\": \"1\", \"b\": \"2\"}");
	snprintf(sb->env, sizeof(sb->env), "{\"K\": \"v\"}");
	sb->sleep_after_ms = 60000;
	sb->limits = limits_usual();
	*spec = SANDBOX_SPEC_DEFAULT;
	snprintf(spec->image, sizeof(spec->image), "base");
	snprintf(spec->name, sizeof(spec->name), "web");
	snprintf(spec->host, sizeof(spec->host), "h9"); /* never compared */
	spec->limits = limits_open();
	spec->sleep_after_ms = spec->lifetime_ms = SANDBOX_OPEN;
	return w;
}

static int check(const struct world *w, struct err *e)
{
	return sandbox_asked_check(&w->asked, &w->sb, w->network, e);
}

/* The same with this difference and no other, in these words. */
#define CHECK_DIFFERS(w, says) \
	do { \
		struct err e_ = { 0 }; \
		CHECK_ERR(check(&(w), &e_), &e_, ERR_CONFLICT); \
		CHECK_STR(e_.msg, ID " has this name and other options: " says); \
		CHECK_STR(e_.reason, REASON_OPTIONS_DIFFER); \
		CHECK(strstr(err_remediation(&e_), "another name")); \
	} while (0)

TEST(what_was_not_said_never_differs)
{
	struct world w = world();
	struct err e;

	CHECK_OK(check(&w, &e), &e);
	w.sb.keep_alive = true;
	w.sb.expires_ms = 1;
	CHECK_OK(check(&w, &e), &e);
	w.asked.spec.keep_alive = true; /* filled in by whatever, and not said */
	w.sb.keep_alive = false;
	CHECK_OK(check(&w, &e), &e);
}

TEST(what_was_said_and_is_so_is_no_difference)
{
	struct world w = world();
	struct err e;

	w.asked.spec.limits = w.sb.limits;
	snprintf(w.asked.spec.runtime, sizeof(w.asked.spec.runtime), "crun");
	snprintf(w.asked.spec.profile, sizeof(w.asked.spec.profile), "small");
	snprintf(w.asked.spec.labels, sizeof(w.asked.spec.labels), "{\"b\":\"2\",\"a\":\"1\"}");
	snprintf(w.asked.spec.env, sizeof(w.asked.spec.env), "{\"K\":\"v\"}");
	w.asked.labels = w.asked.env = w.asked.keep_alive = true;
	w.asked.spec.sleep_after_ms = 60000;
	w.asked.spec.lifetime_ms = 0;
	w.asked.network = POLICY;
	CHECK_OK(check(&w, &e), &e);
}

TEST(every_word_is_compared)
{
	struct world w = world();

	snprintf(w.asked.spec.image, sizeof(w.asked.spec.image), "debian");
	CHECK_DIFFERS(w, "image is base, not debian");
	w = world();
	snprintf(w.asked.spec.runtime, sizeof(w.asked.spec.runtime), "runsc");
	CHECK_DIFFERS(w, "runtime is crun, not runsc");
	w = world();
	snprintf(w.asked.spec.profile, sizeof(w.asked.spec.profile), "large");
	CHECK_DIFFERS(w, "profile is small, not large");
	w.sb.profile[0] = '\0';
	CHECK_DIFFERS(w, "profile is none, not large");
}

TEST(every_limit_is_compared)
{
	for (int i = 0; i < LIMIT_COUNT; i++) {
		struct world w = world();
		char says[80];
		struct err e;

		w.sb.limits.of[i] = 7;
		CHECK_OK(check(&w, &e), &e);
		w.asked.spec.limits.of[i] = 9;
		CHECK_ERR(check(&w, &e), &e, ERR_CONFLICT);
		snprintf(says, sizeof(says), "options: %s is 7, not 9", limit_name((enum limit)i));
		CHECK(strstr(e.msg, says));
		w.asked.spec.limits.of[i] = 7;
		CHECK_OK(check(&w, &e), &e);
	}
}

TEST(sleep_keep_alive_and_an_end_are_compared)
{
	struct world w = world();
	struct err e;

	w.asked.spec.sleep_after_ms = 0;
	CHECK_DIFFERS(w, "sleep_after_ms is 60000, not 0");
	w = world();
	w.asked.keep_alive = w.asked.spec.keep_alive = true;
	CHECK_DIFFERS(w, "keep_alive is false, not true");
	w.asked.spec.keep_alive = false;
	w.sb.keep_alive = true;
	CHECK_DIFFERS(w, "keep_alive is true, not false");
	w = world();
	w.asked.spec.lifetime_ms = 600000;
	CHECK_DIFFERS(w, "it has no end, and lifetime_ms is 600000");
	w.sb.expires_ms = 1; /* when that is, is counted from another request */
	CHECK_OK(check(&w, &e), &e);
	w.asked.spec.lifetime_ms = 0;
	CHECK_DIFFERS(w, "it has an end, and lifetime_ms is 0");
}

TEST(labels_and_env_are_compared_as_maps)
{
	static const char *const others[] = { "{}", "{\"a\":\"1\"}", "{\"a\":\"1\",\"b\":\"3\"}",
					      "{\"a\":\"1\",\"c\":\"2\"}",
					      "{\"a\":\"1\",\"b\":\"2\",\"c\":\"\"}" };

	for (size_t i = 0; i < array_len(others); i++) {
		struct world w = world();

		snprintf(w.asked.spec.labels, sizeof(w.asked.spec.labels), "%s", others[i]);
		w.asked.labels = true;
		CHECK_DIFFERS(w, "labels differ");
		w = world();
		snprintf(w.asked.spec.env, sizeof(w.asked.spec.env), "%s", others[i]);
		w.asked.env = true;
		CHECK_DIFFERS(w, "env differs"); /* and its values are not told */
	}
}

TEST(a_network_is_compared_by_what_it_allows)
{
	static const char *const same[] = {
		POLICY,
		ALLOW(B "," A, ",\"secrets\":[\"t\",\"s\"]"),
		ALLOW("{\"host\":\"A.Example.com\",\"ports\":[443,80]}," B, SECRETS),
	};
	static const char *const others[] = {
		"{\"mode\":\"none\"}",
		ALLOW(A, SECRETS),
		ALLOW(A "," B, ",\"secrets\":[\"s\"]"),
		ALLOW(A ",{\"host\":\"b.example.com\",\"ports\":[444]}", SECRETS),
		ALLOW("{\"host\":\"a.example.com\",\"methods\":[\"GET\"]}," B, SECRETS),
		ALLOW("{\"host\":\"a.example.com\",\"paths\":[\"/x\"]}," B, SECRETS),
		ALLOW(B, ",\"bootstrap\":[" A "]" SECRETS),
		ALLOW(A "," B, SECRETS ",\"max_connections\":5"),
		ALLOW(A "," B, SECRETS ",\"max_requests\":5"),
		ALLOW(A "," B, SECRETS ",\"max_bytes_out\":5"),
	};

	for (size_t i = 0; i < array_len(same); i++) {
		struct world w = world();
		struct err e;

		w.asked.network = same[i];
		CHECK_OK(check(&w, &e), &e);
	}
	for (size_t i = 0; i < array_len(others); i++) {
		struct world w = world();

		w.asked.network = others[i];
		CHECK_DIFFERS(w, "network differs");
		w.asked.network = POLICY;
		w.network = others[i];
		CHECK_DIFFERS(w, "network differs");
	}
}

TEST(the_first_ones_are_named_and_the_rest_counted)
{
	struct world w = world();

	snprintf(w.asked.spec.image, sizeof(w.asked.spec.image), "debian");
	w.asked.spec.limits.of[LIMIT_MEMORY_MB] = 1024;
	CHECK_DIFFERS(w, "image is base, not debian; memory_mb is 512, not 1024");
	w.asked.spec.limits.of[LIMIT_PIDS] = 9;
	w.asked.env = w.asked.labels = true;
	CHECK_DIFFERS(w, "image is base, not debian; memory_mb is 512, not 1024; "
			 "pids is 256, not 9; and 2 more");
}

TEST(one_without_a_name_has_an_identity_and_long_names_fit)
{
	struct world w = world();
	struct err e;

	w.sb.name[0] = '\0';
	memset(w.asked.spec.image, 'x', sizeof(w.asked.spec.image) - 1);
	memset(w.sb.image, 'y', sizeof(w.sb.image) - 1);
	w.asked.spec.limits.of[LIMIT_PIDS] = 9;
	CHECK_ERR(check(&w, &e), &e, ERR_CONFLICT);
	CHECK(strstr(e.msg, "has this identity and other options: image is yyy"));
	CHECK(strstr(e.msg, "; pids is 256, not 9"));
}

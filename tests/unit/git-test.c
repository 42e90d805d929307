#include "core/git.h"

#include <string.h>

#include "test.h"

static struct git_checkout checked(const char *url)
{
	struct git_checkout c = { 0 };
	struct err e;

	snprintf(c.url, sizeof(c.url), "%s", url);
	CHECK_OK(git_checkout_check(&c, &e), &e);
	return c;
}

TEST(the_path_comes_from_the_url)
{
	CHECK_STR(checked("https://h/a/repo.git").path, "/workspace/repo");
	CHECK_STR(checked("https://h/a/repo/").path, "/workspace/repo");
	CHECK_STR(checked("file:///srv/x.git/").path, "/workspace/x");
	CHECK_INT(checked("https://h/r").timeout_ms, 300000);
}

TEST(credentials_leave_the_url)
{
	struct git_checkout c = checked("https://oauth2:s%40cret@host:8443/a/b.git");
	char origin[GIT_URL_SIZE];

	CHECK_STR(c.url, "https://host:8443/a/b.git");
	CHECK_STR(c.username, "oauth2");
	CHECK_STR(c.password, "s@cret");
	git_origin(&c, origin);
	CHECK_STR(origin, "https://host:8443");
	c = checked("https://user@host/a@b");
	CHECK_STR(c.url, "https://host/a@b");
	CHECK_STR(c.username, "user");
	CHECK_STR(c.password, "");
	c = checked("http://t:x@localhost:80/r");
	CHECK_STR(c.url, "http://localhost:80/r");
}

TEST(a_token_alone_has_a_user)
{
	struct git_checkout c = { .url = "https://h/r", .password = "t" };
	struct err e;

	CHECK_OK(git_checkout_check(&c, &e), &e);
	CHECK_STR(c.username, "x-access-token");
}

TEST(what_git_could_take_for_something_else_is_refused)
{
	static const struct git_checkout bad[] = {
		{ .url = "ext::sh -c x" },
		{ .url = "-oProxy=x" },
		{ .url = "https://" },
		{ .url = "https://h/a b" },
		{ .url = "ssh://h/r" },
		{ .url = "https://h/.." },
		{ .url = "https://h/" },
		{ .url = "https://h/r", .branch = "--upload-pack=x" },
		{ .url = "https://h/r", .ref = "-x" },
		{ .url = "https://h/r", .ref = "a..b" },
		{ .url = "https://h/r", .ref = "a:b" },
		{ .url = "https://h/r", .branch = "a", .ref = "b" },
		{ .url = "https://h/r", .path = "relative" },
		{ .url = "https://h/r", .path = "/" },
		{ .url = "https://h/r", .depth = -1 },
		{ .url = "https://h/r", .timeout_ms = -1 },
		{ .url = "https://h/r", .password = "a\nb" },
		{ .url = "https://h/r", .username = "a\nb", .password = "c" },
		{ .url = "http://h/r", .password = "t" },
		{ .url = "http://localhost.evil/r", .password = "t" },
		{ .url = "git://localhost/r", .password = "t" },
		{ .url = "https://u:p@h/r", .password = "t" },
	};

	for (size_t i = 0; i < array_len(bad); i++) {
		struct git_checkout c = bad[i];
		struct err e = { 0 };

		if (git_checkout_check(&c, &e) == 0)
			test_fail(__FILE__, __LINE__, "row %zu (%s) was accepted", i, bad[i].url);
		CHECK_INT(e.code, ERR_INVALID);
		CHECK(!strstr(e.msg, "secret"));
	}
}

TEST(every_saying_has_its_reason)
{
	static const struct {
		const char *said, *reason;
		int status;
	} rows[] = {
		{ "fatal: Authentication failed for 'http://h/r/'\n", "auth_failed", 403 },
		{ "fatal: could not read Username for 'https://h': terminal prompts disabled\n",
		  "auth_failed", 403 },
		{ "fatal: unable to access 'https://h/r/': The requested URL returned error: 403\n",
		  "auth_failed", 403 },
		{ "fatal: repository 'http://h/r/' not found\n", "no_such_repository", 404 },
		{ "fatal: repository '/x' does not exist\n", "no_such_repository", 404 },
		{ "fatal: '/x' does not appear to be a git repository\n"
		  "fatal: Could not read from remote repository.\n",
		  "no_such_repository", 404 },
		{ "fatal: Remote branch nope not found in upstream origin\n", "no_such_ref", 404 },
		{ "fatal: couldn't find remote ref refs/pull/9/head\n", "no_such_ref", 404 },
		{ "error: Server does not allow request for unadvertised object\n"
		  "fatal: remote error: upload-pack: not our ref 12345\n",
		  "no_such_ref", 404 },
		{ "fatal: unable to access 'http://h/': Could not resolve host: h\n", "network",
		  502 },
		{ "fatal: unable to access 'http://h/': Failed to connect to h port 1\n", "network",
		  502 },
		{ "error: RPC failed; curl 18\nfatal: early EOF\n", "network", 502 },
		{ "fatal: write error: No space left on device\n", "no_space", 507 },
		{ "fatal: destination path 'x' already exists and is not an empty directory.\n",
		  "target_exists", 409 },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		git_failure(128, rows[i].said, &e);
		CHECK(e.reason);
		CHECK_STR(e.reason, rows[i].reason);
		CHECK_INT(err_status(&e), rows[i].status);
		CHECK(strncmp(e.msg, "git: ", 5) == 0 && e.fix[0]);
	}
	git_failure(97, "", &e);
	CHECK_STR(e.reason, "no_git");
	git_failure(98, "", &e);
	CHECK_STR(e.reason, "target_exists");
	git_failure(1, "something new\n", &e);
	CHECK(!e.reason);
	CHECK(strstr(e.msg, "something new"));
}

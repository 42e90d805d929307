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

TEST(the_path_is_what_a_url_ends_with)
{
	char url[400] = "https://h/", want[400];
	struct git_checkout c;
	struct err e;

	CHECK_STR(checked("https://h/x.git//").path, "/workspace/x");
	CHECK_STR(checked("https://h/a.git/.git").path, "/workspace/a.git");
	CHECK_STR(checked("https://h/git").path, "/workspace/git");
	CHECK_STR(checked("git://h/a/.b/c").path, "/workspace/c");
	memset(url + 10, 'r', 200);
	snprintf(want, sizeof(want), "/workspace/%s", url + 10);
	CHECK_STR(checked(url).path, want);
	url[210] = 'r';
	c = (struct git_checkout){ 0 };
	snprintf(c.url, sizeof(c.url), "%s", url);
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "repository's name"));
}

TEST(a_path_is_absolute_and_leaves_room)
{
	struct git_checkout c = { .url = "https://h/r", .path = "/a/b///" };
	struct err e;

	CHECK_OK(git_checkout_check(&c, &e), &e);
	CHECK_STR(c.path, "/a/b");
	memcpy(c.path, "/a", 3);
	CHECK_OK(git_checkout_check(&c, &e), &e);
	CHECK_STR(c.path, "/a");
	memcpy(c.path, "///", 4);
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	memset(c.path, 'p', sizeof(c.path));
	c.path[0] = '/';
	c.path[GIT_PATH_SIZE - 64] = '\0';
	CHECK_OK(git_checkout_check(&c, &e), &e);
	c.path[GIT_PATH_SIZE - 64] = 'p';
	c.path[GIT_PATH_SIZE - 63] = '\0';
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "too long"));
}

TEST(depth_and_time_have_their_ends)
{
	static const struct {
		int64_t depth, timeout_ms;
		bool ok;
	} rows[] = {
		{ 0, 1, true },
		{ 1000000, 1, true },
		{ 1000001, 1, false },
		{ -1, 1, false },
		{ 1, 3600000, true },
		{ 1, 3600001, false },
		{ 1, -1, false },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		struct git_checkout c = { .url = "https://h/r" };

		c.depth = rows[i].depth;
		c.timeout_ms = rows[i].timeout_ms;
		if (rows[i].ok)
			CHECK_OK(git_checkout_check(&c, &e), &e);
		else
			CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	}
}

TEST(a_session_branch_is_a_name_and_goes_with_either)
{
	struct git_checkout c = { .url = "https://h/r", .ref = "refs/pull/7/head" };
	struct err e = { 0 };

	memcpy(c.session_branch, "session/a1", 11);
	CHECK_OK(git_checkout_check(&c, &e), &e);
	memcpy(c.session_branch, "-x", 3);
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "session_branch") != NULL);
}

TEST(a_branch_or_a_ref_may_be_given)
{
	struct git_checkout c = { .url = "https://h/r", .branch = "a/b-c" };
	struct err e;

	CHECK_OK(git_checkout_check(&c, &e), &e);
	c = (struct git_checkout){ .url = "https://h/r", .ref = "refs/pull/7/head" };
	CHECK_OK(git_checkout_check(&c, &e), &e);
	c = (struct git_checkout){ .url = "https://h/r", .ref = "a\x7f" };
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "ref is not a name git knows"));
	c = (struct git_checkout){ .url = "https://h/r", .branch = "a b" };
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "branch is not a name git knows"));
}

static void check_user(const char *url, const char *username, const char *password)
{
	struct git_checkout c = checked(url);

	CHECK_STR(c.username, username);
	CHECK_STR(c.password, password);
}

TEST(credentials_are_decoded_byte_by_byte)
{
	check_user("https://u:xabc%2Fg@h/r", "u", "xabc/g");
	check_user("https://u:%4a%4A%6f@h/r", "u", "JJo");
	check_user("https://u:%2@h/r", "u", "%2");
	check_user("https://u:%zz%2g%g2@h/r", "u", "%zz%2g%g2");
	check_user("https://u:%3a%3A%39%30@h/r", "u", "::90");
	check_user("https://u:a@b@h/r", "u", "a@b"); /* the last one is the host's */
	check_user("https://:t@h/r", "x-access-token", "t");
	check_user("https://u:%20@h/r", "u", " ");
}

TEST(credentials_that_cannot_be_used_are_refused)
{
	static const char *const bad[] = { "https://u%00:p@h/r", "https://u:p%00@h/r",
					   "https://u%0a:p@h/r", "https://u:p%7f@h/r",
					   "https://u:%1f@h/r" };
	char longest[2 * GIT_SECRET_SIZE] = "https://";
	struct git_checkout c;
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++) {
		c = (struct git_checkout){ 0 };
		snprintf(c.url, sizeof(c.url), "%s", bad[i]);
		CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	}
	for (int more = 0; more < 2; more++) {
		memset(longest + 8, 'u', GIT_SECRET_SIZE);
		memcpy(longest + 8 + GIT_SECRET_SIZE - 1 + more, "@h/r", 5);
		c = (struct git_checkout){ 0 };
		snprintf(c.url, sizeof(c.url), "%s", longest);
		CHECK_INT(git_checkout_check(&c, &e), -more);
	}
}

TEST(credentials_stand_in_one_place)
{
	struct git_checkout c = { .url = "https://u:p@h/r", .username = "v" };
	struct err e;

	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	c = (struct git_checkout){ .url = "https://u@h/r", .password = "p" };
	CHECK_ERR(git_checkout_check(&c, &e), &e, ERR_INVALID);
	c = (struct git_checkout){ .url = "https://u@h/r", .username = "v" };
	CHECK_OK(git_checkout_check(&c, &e), &e);
	CHECK_STR(c.username, "u");
	CHECK_STR(c.url, "https://h/r");
}

TEST(a_password_goes_over_https_or_to_this_machine)
{
	static const struct {
		const char *url;
		bool ok;
	} rows[] = {
		{ "https://h/r", true },
		{ "http://localhost/r", true },
		{ "http://localhost:8080/r", true },
		{ "http://127.0.0.1/r", true },
		{ "http://[::1]:80/r", true },
		{ "http://localhost.evil/r", false },
		{ "http://localhos/r", false },
		{ "http://127.0.0.2/r", false },
		{ "http://[::2]/r", false },
		{ "file:///r", false },
		{ "git://h/r", false },
	};
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		struct git_checkout c = { .password = "t" };

		snprintf(c.url, sizeof(c.url), "%s", rows[i].url);
		if ((git_checkout_check(&c, &e) == 0) != rows[i].ok)
			test_fail(__FILE__, __LINE__, "%s", rows[i].url);
		if (!rows[i].ok)
			CHECK(strstr(e.msg, "only sent over https") && strstr(e.fix, "https://"));
	}
}

TEST(an_origin_ends_where_the_path_begins)
{
	static const struct {
		const char *url, *origin;
	} rows[] = {
		{ "https://h:1/r", "https://h:1" },
		{ "https://h?x", "https://h" },
		{ "http://h#x", "http://h" },
		{ "h/r", "h" },
	};
	char origin[GIT_URL_SIZE];

	for (size_t i = 0; i < array_len(rows); i++) {
		struct git_checkout c = { 0 };

		snprintf(c.url, sizeof(c.url), "%s", rows[i].url);
		memset(origin, 'x', sizeof(origin));
		git_origin(&c, origin);
		CHECK_STR(origin, rows[i].origin);
	}
}

/* Every row of the table: what git says, alone on its line, and all that a client is told. */
TEST(every_row_of_sayings_is_told_whole)
{
#define CHECK_AUTH    "Check username, token and whether it may read this repository."
#define CHECK_REPO    "Check the URL; a private repository may look absent without a token."
#define CHECK_REF     "Check the name of the branch or ref."
#define CHECK_NETWORK "Check that the sandbox may reach that host, then try again."
#define MAKE_ROOM     "Remove something in the sandbox, or create one with a larger disk."
	static const struct {
		const char *reason;
		enum err_code code;
		int status;
		const char *fix, *words[16];
	} rows[] = {
		{ "auth_failed",
		  ERR_DENIED,
		  403,
		  CHECK_AUTH,
		  { "Authentication failed", "could not read Username", "could not read Password",
		    "returned error: 401", "returned error: 403", "Access denied" } },
		{ "no_such_ref",
		  ERR_NOT_FOUND,
		  404,
		  CHECK_REF,
		  { "Remote branch", "couldn't find remote ref", "not our ref",
		    "did not match any file(s) known", "reference is not a tree",
		    "unable to read tree" } },
		{ "no_such_repository",
		  ERR_NOT_FOUND,
		  404,
		  CHECK_REPO,
		  { "does not appear to be a git", "returned error: 404",
		    "repository not exported", "not valid: is this a git", "not found",
		    "does not exist" } },
		{ "target_exists",
		  ERR_CONFLICT,
		  409,
		  "Remove it, or give another path.",
		  { "already exists" } },
		{ "no_space",
		  ERR_LIMIT,
		  507,
		  MAKE_ROOM,
		  { "No space left on device", "Disk quota exceeded" } },
		{ "network",
		  ERR_BUSY,
		  502,
		  CHECK_NETWORK,
		  { "Could not resolve host", "Failed to connect", "Connection refused",
		    "Connection timed out", "Connection reset", "Network is unreachable",
		    "No route to host", "remote end hung up", "RPC failed", "early EOF",
		    "unable to connect", "unable to access", "unable to look up" } },
	};
	char said[200], want[220];
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		for (size_t k = 0; rows[i].words[k]; k++) {
			snprintf(said, sizeof(said), "fatal: %s.\n", rows[i].words[k]);
			snprintf(want, sizeof(want), "git: fatal: %s.", rows[i].words[k]);
			e = (struct err){ 0 };
			CHECK_INT(git_failure(128, said, &e), -1);
			CHECK_STR(e.reason, rows[i].reason);
			CHECK_INT(e.code, rows[i].code);
			CHECK_INT(err_status(&e), rows[i].status);
			CHECK_STR(e.fix, rows[i].fix);
			CHECK_STR(e.msg, want);
		}
	}
}

TEST(the_line_that_says_most_is_shown)
{
	static const struct {
		const char *said, *shown;
	} rows[] = {
		{ "a\nb\n", "git ended with 3: b" },
		{ "a\nfatal: x\nb\n", "git ended with 3: fatal: x" },
		{ "error: x\nfatal: y\r\n\r\n", "git ended with 3: fatal: y" },
		{ "fatal: x\nerror: y\nhint", "git ended with 3: error: y" },
		{ "a\n\n", "git ended with 3: a" },
		{ "", "git ended with 3: " },
		{ "fatal x\nb", "git ended with 3: b" },
		{ "error x\nb", "git ended with 3: b" },
	};
	char said[400];
	struct err e;

	for (size_t i = 0; i < array_len(rows); i++) {
		CHECK_INT(git_failure(3, rows[i].said, &e), -1);
		CHECK_STR(e.msg, rows[i].shown);
		CHECK_INT(e.code, ERR_CONFLICT);
		CHECK_STR(e.fix, "The exec of this checkout has all that git said.");
	}
	memset(said, 'x', sizeof(said));
	said[sizeof(said) - 1] = '\0';
	git_failure(3, said, &e);
	CHECK_INT(strlen(e.msg), strlen("git ended with 3: ") + 199);
}

TEST(what_the_script_and_the_clock_say)
{
	struct git_checkout c = { .timeout_ms = 1234 };
	struct err e = { 0 };

	CHECK_INT(git_failure(GIT_EXIT_NO_GIT, "", &e), -1);
	CHECK_INT(e.code, ERR_UNSUPPORTED);
	CHECK_STR(e.msg, "there is no git in this sandbox's image");
	CHECK_STR(e.fix, "Use an image that has git, or install it in the sandbox.");
	e = (struct err){ 0 };
	CHECK_INT(git_failure(GIT_EXIT_TARGET_EXISTS, "", &e), -1);
	CHECK_INT(e.code, ERR_CONFLICT);
	CHECK_STR(e.msg, "there is something at the path already");
	CHECK_STR(e.fix, "Remove it, or give another path.");
	e = (struct err){ 0 };
	CHECK_INT(git_timed_out(&c, &e), -1);
	CHECK_INT(e.code, ERR_TIMEOUT);
	CHECK_STR(e.msg, "the checkout took longer than 1234 ms and was ended");
	CHECK_STR(e.fix, "Give it a longer timeout_ms, or a depth.");
	CHECK_STR(e.reason, "timed_out");
}

#include "image/pull-error.h"

#include "test.h"

#define FATAL(words) "time=\"2026-11-16T17:35:06Z\" level=fatal msg=\"" words "\"\n"
#define PINGING      "pinging registry r.invalid: Get \\\"https://r.invalid/v2/\\\": dial tcp: "
#define PINGING_SAID "pinging registry r.invalid: Get \"https://r.invalid/v2/\": dial tcp: "
#define LONG_NAME    "abcdefghij/abcdefghij/abcdefghij/abcdefghij/abcdefghij/abcdefghij"

static void tell(const char *reference, const char *said, struct err *e)
{
	cleanup(buf_done) struct buf text = buf_make(16384);

	buf_adds(&text, said);
	CHECK_INT(pull_error(reference, &text, e), -1);
}

TEST(the_cause_is_told_and_what_to_do)
{
	static const struct {
		const char *said, *msg;
		enum err_code code;
		const char *fix;
	} rows[] = {
		/* skopeo adds a tag to the name */
		{ FATAL("initializing source docker://r.invalid/busybox:latest: " PINGING
			"lookup r.invalid on 10.255.255.53:53: no such host"),
		  "r.invalid/busybox cannot be pulled: " PINGING_SAID
		  "lookup r.invalid on 10.255.255.53:53: no such host",
		  ERR_NOT_FOUND, "Check the registry's name." },
		{ FATAL("initializing source docker://r.invalid/busybox: " PINGING
			"connect: connection refused"),
		  "r.invalid/busybox cannot be pulled: " PINGING_SAID "connect: connection refused",
		  ERR_TIMEOUT, "It is the server's host that pulls" },
		{ FATAL("initializing source docker://r.invalid/busybox:latest: reading manifest "
			"latest in r.invalid/busybox: manifest unknown"),
		  "r.invalid/busybox cannot be pulled: reading manifest latest in "
		  "r.invalid/busybox: manifest unknown",
		  ERR_NOT_FOUND, "Check its name and tag" },
		{ FATAL("initializing source docker://r.invalid/busybox:latest: reading manifest "
			"latest in r.invalid/busybox: unauthorized: authentication required"),
		  "r.invalid/busybox cannot be pulled: reading manifest latest in "
		  "r.invalid/busybox: unauthorized: authentication required",
		  ERR_DENIED, "The registry wants a login" },
		{ FATAL("initializing source docker://r.invalid/busybox:latest: pinging container "
			"registry r.invalid: http: server gave HTTP response to HTTPS client"),
		  "r.invalid/busybox cannot be pulled: pinging container registry r.invalid: "
		  "http: server gave HTTP response to HTTPS client",
		  ERR_INVALID, "insecure_registries" },
		{ "killed\n", "r.invalid/busybox cannot be pulled: killed", ERR_INVALID,
		  "It is the server's host that pulls" },
		{ "", "r.invalid/busybox cannot be pulled: ", ERR_INVALID,
		  "It is the server's host that pulls" },
	};

	for (size_t i = 0; i < array_len(rows); i++) {
		struct err e = { 0 };

		tell("r.invalid/busybox", rows[i].said, &e);
		CHECK_STR(e.msg, rows[i].msg);
		CHECK_INT(e.code, rows[i].code);
		CHECK(strstr(e.fix, rows[i].fix));
	}
}

TEST(of_a_long_line_whole_words_of_its_end_are_told)
{
	static const char said[] = FATAL("copying docker://r.invalid/" LONG_NAME ": first words "
					 "of many: reading " LONG_NAME ": and " LONG_NAME
					 ": and once more " LONG_NAME ": no space left on device");
	char reference[256];
	struct err e = { 0 };

	memset(reference, 'r', sizeof(reference) - 1);
	reference[sizeof(reference) - 1] = '\0';
	tell(reference, said, &e);
	CHECK(strstr(e.msg, "r cannot be pulled: ... and " LONG_NAME ": and once more " LONG_NAME
			    ": no space left on device"));
	CHECK_INT(e.code, ERR_LIMIT);
}

#include "core/image-name.h"

#include "test.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

TEST(good_names_pass)
{
	static const char *const good[] = { "a", "base:1", "team/py-3.12_x", "0", "a.b", "a/b:c" };
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_OK(image_name_check(good[i], &e), &e);
}

TEST(bad_names_do_not)
{
	static const char *const bad[] = {
		"",
		".a",
		"-a",
		"/a",
		":a",
		"A",
		"a b",
		"a\n",
		"a..b",
		"a//b",
		"a\\b",
		"a;b",
		"\xc3\xa9",
		"a@b",
		"../etc",
	};
	char longest[IMAGE_NAME_SIZE + 1];
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(image_name_check(bad[i], &e), &e, ERR_INVALID);
	memset(longest, 'a', sizeof(longest));
	longest[IMAGE_NAME_SIZE] = '\0';
	CHECK_ERR(image_name_check(longest, &e), &e, ERR_INVALID);
	longest[IMAGE_NAME_SIZE - 1] = '\0';
	CHECK_OK(image_name_check(longest, &e), &e);
}

TEST(good_references_pass)
{
	static const char *const good[] = {
		"localhost:5000/base:1",
		"localhost/base",
		"127.0.0.1:5000/a/b/c:Tag_1.2-x",
		"[::1]:5000/a",
		"registry.example/a@sha256:" HEX64,
		"registry.example:65535/a__b/c--d:v1@sha256:" HEX64,
		"Registry.Example/a.b",
	};
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_OK(image_reference_check(good[i], &e), &e);
}

TEST(bad_references_do_not)
{
	static const char *const bad[] = {
		"",
		"base",
		"base:1",
		"library/base",
		"-oops.example/a",
		"--help",
		"localhost:5000",
		"localhost:5000/",
		"localhost:/a",
		"localhost:0/a",
		"localhost:65536/a",
		"localhost:123456/a",
		"localhost:5000//a",
		"localhost/a/",
		"localhost/../a",
		"localhost/a..b",
		"localhost/-a",
		"localhost/A",
		"localhost/a:",
		"localhost/a:-x",
		"localhost/a:x y",
		"localhost/a b",
		" localhost/a",
		"localhost/a\n",
		"localhost/a@",
		"localhost/a@sha256:12",
		"localhost/a:x..y",
		"[a..b]/c",
		"[]/a",
		"[::1/a",
		"[x]/a",
		"a..b/c",
		"a.b-/c",
		"docker://localhost/a",
		"localhost/a:t:u",
		"user@a.b/c",
		"localhost/a;b",
		"localhost/$(a)",
		"localhost/a%2f",
	};
	char longest[IMAGE_REFERENCE_SIZE + 1];
	struct err e;

	for (size_t i = 0; i < array_len(bad); i++)
		if (image_reference_check(bad[i], &e) == 0)
			test_fail(__FILE__, __LINE__, "passed: %s", bad[i]);
	CHECK_ERR(image_reference_check("localhost/a@sha256:" HEX64 "0", &e), &e, ERR_INVALID);
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, "localhost/", 10);
	longest[IMAGE_REFERENCE_SIZE] = '\0';
	CHECK_ERR(image_reference_check(longest, &e), &e, ERR_INVALID);
	longest[IMAGE_REFERENCE_SIZE - 1] = '\0';
	CHECK_OK(image_reference_check(longest, &e), &e);
}

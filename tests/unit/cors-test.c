#include "berthd/front/cors.h"

#include "test.h"

TEST(an_origin_is_a_scheme_a_host_and_a_port)
{
	static const char *const good[] = { "", " ", "https://a.example", "http://localhost:3000",
					    "https://a.example https://b.example:8443",
					    "https://a.example,http://[::1]:80 , https://c-d.org" };
	static const char *const bad[] = { "*", "https://*", "https://a.example/", "a.example",
					   "https://a.example/path", "https://", "null",
					   "ftp://a.example", "https://A.example",
					   "https://a.example https://b.example/",
					   "https://a@b.example" };
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_OK(cors_check(good[i], &e), &e);
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(cors_check(bad[i], &e), &e, ERR_INVALID);
}

TEST(only_the_very_origin_is_allowed)
{
	static const char origins[] = "https://a.example, http://localhost:3000";
	static const char *const others[] = { "https://a.example.", "https://a.exampl",
					      "https://a.example.evil", "http://a.example",
					      "https://a.example:443", "http://localhost:300",
					      "http://localhost:30000", "null", "", "*", ",",
					      "https://a.example, http://localhost:3000" };

	CHECK(cors_allows(origins, "https://a.example"));
	CHECK(cors_allows(origins, "http://localhost:3000"));
	CHECK(!cors_allows(origins, NULL));
	CHECK(!cors_allows("", "https://a.example"));
	CHECK(!cors_allows("", ""));
	for (size_t i = 0; i < array_len(others); i++)
		CHECK(!cors_allows(origins, others[i]));
}

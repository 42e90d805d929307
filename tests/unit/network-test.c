#include "core/network.h"

#include "test.h"

static void reads(const char *text, struct network *n)
{
	struct err e = { 0 };

	if (network_read(text, strlen(text), n, &e) < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", text, e.msg);
}

#define RULE(more) "{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\"," more "}]}"

static void refuses(const char *text, const char *why)
{
	struct network n = { 0 };
	struct err e = { 0 };

	if (network_read(text, strlen(text), &n, &e) == 0)
		test_fail(__FILE__, __LINE__, "%s is taken", text);
	if (!strstr(e.msg, why))
		test_fail(__FILE__, __LINE__, "%s: %s", text, e.msg);
	network_done(&n);
}

TEST(only_what_is_named_is_allowed)
{
	struct network n = { 0 };

	reads("{\"mode\":\"allow\",\"rules\":[{\"host\":\"API.example.com\"},"
	      "{\"host\":\"*.example.net\",\"ports\":[8443]},{\"host\":\"203.0.113.7\"}]}",
	      &n);
	CHECK(network_allows_name(&n, "api.example.com"));
	CHECK(!network_allows_name(&n, "example.com") && !network_allows_name(&n, "x.example.com"));
	CHECK(network_allows_name(&n, "a.b.example.net"));
	CHECK(!network_allows_name(&n, "example.net"));
	CHECK(!network_allows_name(&n, "badexample.net"));
	CHECK(network_allows_port(&n, "api.example.com", 443));
	CHECK(network_allows_port(&n, "api.example.com", 80));
	CHECK(!network_allows_port(&n, "api.example.com", 22));
	CHECK(network_allows_port(&n, "x.example.net", 8443));
	CHECK(!network_allows_port(&n, "x.example.net", 443));
	CHECK(network_allows_port(&n, "203.0.113.7", 443) && network_has_address(&n));
	network_done(&n);
}

TEST(mode_none_is_nothing)
{
	struct network n = { 0 };

	reads("{\"mode\":\"none\"}", &n);
	CHECK(!network_allows_name(&n, "a.example.com") && !network_has_address(&n));
	refuses("{\"mode\":\"none\",\"rules\":[{\"host\":\"a.example.com\"}]}", "no rules");
	network_done(&n);
}

TEST(methods_and_paths)
{
	struct network n = { 0 };

	reads("{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"methods\":[\"GET\"],"
	      "\"paths\":[\"/v1/*\",\"/up\"]}]}",
	      &n);
	CHECK(network_wants_http(&n, "a.example.com", 443));
	CHECK(network_allows_request(&n, "a.example.com", 443, "GET", "/v1/x?a=../b"));
	CHECK(network_allows_request(&n, "a.example.com", 443, "GET", "/up"));
	CHECK(!network_allows_request(&n, "a.example.com", 443, "GET", "/upper"));
	CHECK(!network_allows_request(&n, "a.example.com", 443, "POST", "/up"));
	CHECK(!network_allows_request(&n, "a.example.com", 443, "GET", "/v1/../up"));
	CHECK(!network_allows_request(&n, "a.example.com", 443, "GET", "/v1/%2E%2e/up"));
	CHECK(!network_allows_request(&n, "a.example.com", 443, "GET", "/v1/.."));
	CHECK(!network_allows_request(&n, "a.example.com", 443, "GET", "//v1/x"));
	network_done(&n);
}

TEST(the_first_phase_ends_with_the_lock)
{
	struct network n = { 0 };

	reads("{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\"}],"
	      "\"bootstrap\":[{\"host\":\"b.example.com\"}]}",
	      &n);
	CHECK(network_allows_name(&n, "b.example.com"));
	n.locked = true;
	CHECK(!network_allows_name(&n, "b.example.com"));
	CHECK(network_allows_name(&n, "a.example.com"));
	network_done(&n);
}

TEST(what_cannot_be_is_said)
{
	refuses("{\"mode\":\"all\"}", "mode must be");
	refuses("{\"mode\":\"allow\",\"rules\":[{\"host\":\"com\"}]}", "top-level");
	refuses("{\"mode\":\"allow\",\"rules\":[{\"host\":\"*.com\"}]}", "top-level");
	refuses("{\"mode\":\"allow\",\"rules\":[{\"host\":\"*\"}]}", "no host name");
	refuses("{\"mode\":\"allow\",\"rules\":[{\"host\":\"a..example.com\"}]}", "no host name");
	refuses("{\"mode\":\"allow\",\"rules\":[{\"host\":\"1.2.3\"}]}", "neither a name");
	refuses(RULE("\"ports\":[0]"), "port");
	refuses(RULE("\"ports\":[53]"), "53");
	refuses("{\"mode\":\"allow\",\"max_requests\":-1}", "at least 1");
	refuses("{\"mode\":\"allow\",\"max_requests\":0}", "at least 1");
	refuses("{\"mode\":\"allow\",\"max_requests\":null}", "whole number");
	refuses(RULE("\"paths\":[\"v1\"]"), "begins with /");
	refuses(RULE("\"methods\":[\"get\"]"), "capital");
}

TEST(it_is_written_as_it_is_read)
{
	static const char text[] =
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"ports\":[443,80],"
		"\"methods\":[\"GET\",\"HEAD\"],\"paths\":[\"/x\",\"/y/*\"]}],"
		"\"bootstrap\":[{\"host\":\"*.example.net\",\"ports\":[22]}],"
		"\"max_requests\":7,\"secrets\":[\"s1\",\"s2\"]}";
	cleanup(buf_done) struct buf out = buf_make(4096);
	struct network n = { 0 };

	reads(text, &n);
	buf_adds(&out, "{");
	network_json(&out, &n);
	buf_adds(&out, "}");
	CHECK_STR(buf_str(&out), text);
	network_done(&n);
}

TEST(inner_addresses)
{
	static const char *const inside[] = {
		"127.0.0.1",
		"10.9.8.7",
		"172.16.0.1",
		"172.31.255.255",
		"192.168.1.1",
		"168.63.129.16",
		"169.254.169.254",
		"100.64.0.1",
		"0.0.0.0",
		"224.0.0.1",
		"255.255.255.255",
		"198.18.0.1",
		"198.19.255.255",
	};
	static const char *const outside[] = { "1.1.1.1", "172.32.0.1", "172.15.255.255",
					       "192.167.1.1", "100.128.0.1", "198.20.0.1",
					       "223.255.255.255", "169.253.0.1" };
	uint32_t address;

	for (size_t i = 0; i < array_len(inside); i++)
		CHECK(network_address_read(inside[i], &address) &&
		      network_address_is_inner(address));
	for (size_t i = 0; i < array_len(outside); i++)
		CHECK(network_address_read(outside[i], &address) &&
		      !network_address_is_inner(address));
}

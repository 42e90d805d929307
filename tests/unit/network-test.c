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

TEST(mode_open_is_every_name_and_every_public_address)
{
	struct network n = { 0 };

	reads("{\"mode\":\"open\"}", &n);
	CHECK_INT(n.mode, NETWORK_OPEN);
	CHECK(network_allows_name(&n, "a.example.com") && network_allows_name(&n, "203.0.113.7"));
	CHECK(network_allows_port(&n, "a.example.com", 22));
	CHECK(network_allows_port(&n, "203.0.113.7", 65535));
	CHECK(network_allows_request(&n, "a.example.com", 80, "DELETE", "/a/../b"));
	CHECK(!network_wants_http(&n, "a.example.com", 443));
	network_done(&n);
}

TEST(mode_open_does_not_reach_inwards)
{
	static const char *const inner[] = { "127.0.0.1", "10.0.0.1", "169.254.169.254",
					     "192.168.1.1", "198.18.0.1", "100.64.0.2" };
	static const char *const no_names[] = { "localhost", "", "metadata", "a..b", "0x7f.1" };
	struct network n = { 0 };

	reads("{\"mode\":\"open\"}", &n);
	for (size_t i = 0; i < array_len(inner); i++) {
		CHECK(!network_allows_name(&n, inner[i]) && !network_allows_port(&n, inner[i], 80));
		CHECK(!network_allows_request(&n, inner[i], 80, "GET", "/"));
		CHECK(network_wants_http(&n, inner[i], 80));
	}
	for (size_t i = 0; i < array_len(no_names); i++)
		CHECK(!network_allows_name(&n, no_names[i]));
	/* By the mode alone; what leads to an address of the host asks for a rule. */
	CHECK(!network_rule_allows(&n, "a.example.com", 443));
	CHECK(!network_rule_allows(&n, "203.0.113.7", 443));
	network_done(&n);
}

TEST(a_rule_allows_only_in_mode_allow)
{
	struct network n = { 0 };

	reads(RULE("\"ports\":[80]"), &n);
	CHECK(network_rule_allows(&n, "a.example.com", 80));
	CHECK(!network_rule_allows(&n, "a.example.com", 81));
	CHECK(!network_allows_name(&n, "b.example.com") && !network_allows_port(&n, "1.1.1.1", 80));
	n.mode = NETWORK_OPEN;
	CHECK(!network_rule_allows(&n, "a.example.com", 80));
	network_done(&n);
}

TEST(mode_open_has_limits_and_secrets_but_no_rules)
{
	cleanup(buf_done) struct buf out = buf_make(1024);
	struct network n = { 0 };

	reads("{\"mode\":\"open\",\"max_requests\":3,\"secrets\":[\"one\"]}", &n);
	CHECK(n.max_requests == 3 && n.secret_count == 1 && !network_has_address(&n));
	network_json(&out, &n);
	CHECK_STR(buf_str(&out),
		  "\"mode\":\"open\",\"max_requests\":3,\"secrets\":[\"one\"]");
	refuses("{\"mode\":\"open\",\"rules\":[{\"host\":\"a.example.com\"}]}", "no rules");
	refuses("{\"mode\":\"open\",\"bootstrap\":[{\"host\":\"a.example.com\"}]}", "no rules");
	refuses("{\"mode\":\"none\",\"secrets\":[\"one\"]}", "no rules");
	refuses("{\"mode\":\"opened\"}", "or \"open\", not \"opened\"");
	refuses("{\"mode\":\"a\\u0007\"}", "or \"open\", not \"...\"");
	refuses("{\"mode\":\"\"}", "mode must be");
	network_done(&n);
}

TEST(the_modes_have_the_names_of_the_api)
{
	CHECK_STR(network_mode_name(NETWORK_NONE), "none");
	CHECK_STR(network_mode_name(NETWORK_ALLOW), "allow");
	CHECK_STR(network_mode_name(NETWORK_OPEN), "open");
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

static int host_check(const char *host)
{
	struct err e;
	int n = network_host_check(host, &e);

	if (n < 0) {
		CHECK_INT(e.code, ERR_INVALID);
		CHECK(strstr(e.msg, host) && strstr(e.fix, "Write it like api.example.com"));
	}
	return n;
}

TEST(a_host_is_a_name_of_labels_or_an_address)
{
	static const char *const good[] = { "a.b", "*.a.b", "a-b.c_d.e9", "1.2.3.4",
					    "4.example", "a.b9c", "0.b", "a.9c",
					    "_dmarc.a.b", "x.y.z.w" };
	static const char *const bad[] = { "", "a", "*xexample.com", "*.b", "a.",
					   ".a.b", "a..b", "-a.b", "a-.b", "a.-b",
					   "a.b-", "A.b", "a b.c", "a.b/c", "a.1",
					   "1.2.3", "*.1.2", "a.*.b", "a.b:80", "1.2.3.4.5",
					   "*.1.2.3.4" };
	char label[80] = "";

	for (size_t i = 0; i < array_len(good); i++)
		if (host_check(good[i]) < 0)
			test_fail(__FILE__, __LINE__, "%s is refused", good[i]);
	for (size_t i = 0; i < array_len(bad); i++)
		if (host_check(bad[i]) == 0)
			test_fail(__FILE__, __LINE__, "%s is taken", bad[i]);
	memset(label, 'a', NETWORK_LABEL_MAX);
	memcpy(label + NETWORK_LABEL_MAX, ".b", 3);
	CHECK_INT(host_check(label), 0);
	memset(label, 'a', NETWORK_LABEL_MAX + 1);
	memcpy(label + NETWORK_LABEL_MAX + 1, ".b", 3);
	CHECK_INT(host_check(label), -1);
}

static int add_rule(struct network *n, struct network_rule r, struct err *e)
{
	if (!r.host[0])
		memcpy(r.host, "a.example.com", 14);
	return network_add(n, &r, e);
}

TEST(a_rule_has_some_ports_and_none_of_names)
{
	struct network n = { 0 };
	struct network_rule full = { .port_count = NETWORK_PORTS_MAX };
	struct err e;

	for (int i = 0; i < NETWORK_PORTS_MAX; i++)
		full.ports[i] = (uint16_t)(100 + i);
	CHECK_OK(add_rule(&n, full, &e), &e);
	CHECK(network_allows_port(&n, "", 115) == false);
	full.port_count++;
	CHECK_ERR(add_rule(&n, full, &e), &e, ERR_INVALID);
	CHECK(strstr(e.msg, "from 1 to 16 ports"));
	full.port_count = 0;
	CHECK_ERR(add_rule(&n, full, &e), &e, ERR_INVALID);
	full.port_count = 2;
	full.ports[1] = 53;
	CHECK_ERR(add_rule(&n, full, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "a.example.com: port 53 cannot be allowed");
	full.ports[1] = 0;
	CHECK_ERR(add_rule(&n, full, &e), &e, ERR_INVALID);
	full.ports[1] = 54;
	full.ports[0] = 1;
	CHECK_OK(add_rule(&n, full, &e), &e);
	CHECK_INT(n.count, 2);
	network_done(&n);
	CHECK(n.count == 0 && !n.rules);
}

TEST(a_policy_has_a_most_of_rules)
{
	struct network n = { 0 };
	struct network_rule r = { .port_count = 1, .ports = { 80 } };
	struct err e;

	for (int i = 0; i < NETWORK_RULES_MAX; i++)
		CHECK_OK(add_rule(&n, r, &e), &e);
	CHECK_ERR(add_rule(&n, r, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "more than 64 rules");
	network_done(&n);
}

TEST(a_rule_with_a_bad_part_is_refused)
{
	struct network n = { 0 };
	struct network_rule r = { .port_count = 1, .ports = { 80 } };
	struct err e;

	memcpy(r.methods, "get", 4);
	CHECK_ERR(add_rule(&n, r, &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "a method is of capital letters: get");
	memcpy(r.methods, "GET", 4);
	memcpy(r.paths, "x", 2);
	CHECK_ERR(add_rule(&n, r, &e), &e, ERR_INVALID);
	memcpy(r.paths, "/x", 3);
	CHECK_OK(add_rule(&n, r, &e), &e);
	memcpy(r.host, "com", 4);
	CHECK_ERR(add_rule(&n, r, &e), &e, ERR_INVALID);
	CHECK_INT(n.count, 1);
	network_done(&n);
}

TEST(paths_are_written_plainly)
{
	static const char *const good[] = { "", "/", "/*", "/a /b/*", "/a  /b ", "/a/*  /c" };
	static const char *const bad[] = { "a", "/a*b", "/a b", "/a?", "/a?b", "/%", "/a /b%2f",
					   "/*/ /a", "/**" };
	struct err e;

	for (size_t i = 0; i < array_len(good); i++)
		CHECK_OK(network_paths_check(good[i], &e), &e);
	for (size_t i = 0; i < array_len(bad); i++)
		CHECK_ERR(network_paths_check(bad[i], &e), &e, ERR_INVALID);
	CHECK_ERR(network_paths_check("/a /b*c", &e), &e, ERR_INVALID);
	CHECK_STR(e.msg, "a path has * only at its end: /b*c");
}

TEST(a_method_is_one_of_the_words)
{
	CHECK(network_has_method("", "ANY"));
	CHECK(network_has_method("GET HEAD", "GET") && network_has_method("GET HEAD", "HEAD"));
	CHECK(network_has_method("GET  HEAD", "HEAD"));
	CHECK(!network_has_method("GET HEAD", "POST") && !network_has_method("GET HEAD", "GE"));
	CHECK(!network_has_method("GET HEAD", "GETX") && !network_has_method("GET", "HEAD"));
}

TEST(a_path_is_in_the_list_as_it_stands)
{
	static const struct {
		const char *paths, *path;
		bool in;
	} rows[] = {
		{ "", "/../x", true },
		{ "/a", "/a", true },
		{ "/a", "/a?q", true },
		{ "/a", "/a#f", false },
		{ "/a", "/a?q#f", true },
		{ "/a/*", "/a/x#/../b", false },
		{ "/a", "/ab", false },
		{ "/ab", "/a", false },
		{ "/a*", "/a", true },
		{ "/a*", "/ab", true },
		{ "/a*", "/b", false },
		{ "/a/*", "/a", false },
		{ "/x /a", "/a", true },
		{ "/x  /a*", "/ab", true },
		{ "/x /y", "/a", false },
		{ "/*", "/./a", false },
		{ "/*", "/a/./b", false },
		{ "/*", "/a/../b", false },
		{ "/*", "/a//b", false },
		{ "/*", "/a\\b", false },
		{ "/*", "/a%2Eb", false },
		{ "/*", "/a%2fb", false },
		{ "/*", "/a%5Cb", false },
		{ "/*", "/a;b", false },
		{ "/*", "/a/.", false },
		{ "/*", "/a/..", false },
		{ "/*", "/.", false },
		{ "/*", "/..", false },
		{ "/*", "/a/.b", true },
		{ "/*", "/a/..b", true },
		{ "/*", "/a%2g", true },
		{ "/*", "/a?b=/../c//d;e", true },
		{ "/*", "/a/...", true },
		{ "/*", "/a.", true },
		{ "/*", "/a%2", true },
		{ "/*", "/", true },
	};

	for (size_t i = 0; i < array_len(rows); i++)
		if (network_has_path(rows[i].paths, rows[i].path) != rows[i].in)
			test_fail(__FILE__, __LINE__, "%s in \"%s\"", rows[i].path, rows[i].paths);
}

TEST(bytes_that_are_no_http_may_go_where_one_rule_has_no_words)
{
	struct network n = { 0 };

	reads("{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"methods\":[\"GET\"]},"
	      "{\"host\":\"a.example.com\",\"ports\":[22]},"
	      "{\"host\":\"b.example.com\",\"paths\":[\"/x\"]}]}",
	      &n);
	CHECK(network_wants_http(&n, "a.example.com", 443));
	CHECK(!network_wants_http(&n, "a.example.com", 22));
	CHECK(network_wants_http(&n, "b.example.com", 443));
	CHECK(network_wants_http(&n, "c.example.com", 22));
	CHECK(!network_allows_request(&n, "a.example.com", 8080, "GET", "/"));
	CHECK(!network_allows_request(&n, "c.example.com", 443, "GET", "/"));
	CHECK(network_allows_request(&n, "b.example.com", 443, "PUT", "/x"));
	n.mode = NETWORK_NONE;
	CHECK(!network_allows_name(&n, "a.example.com"));
	CHECK(!network_allows_port(&n, "a.example.com", 22));
	network_done(&n);
}

TEST(a_wildcard_is_for_what_is_below_it)
{
	CHECK(network_host_matches("*.b.c", "a.b.c") && network_host_matches("*.b.c", "x.a.b.c"));
	CHECK(!network_host_matches("*.b.c", "b.c") && !network_host_matches("*.b.c", ".b.c"));
	CHECK(!network_host_matches("*.b.c", "ab.c") && !network_host_matches("*.b.c", "a.b.cc"));
	CHECK(network_host_matches("b.c", "b.c") && !network_host_matches("b.c", "a.b.c"));
}

/* The first and last of each, and those beside them. */
TEST(inner_addresses_at_their_edges)
{
	static const struct {
		uint32_t first, last;
	} rows[] = {
		{ 0x00000000, 0x00ffffff },
		{ 0x0a000000, 0x0affffff },
		{ 0x64400000, 0x647fffff },
		{ 0x7f000000, 0x7fffffff },
		{ 0xa9fe0000, 0xa9feffff },
		{ 0xa83f8110, 0xa83f8110 },
		{ 0xac100000, 0xac1fffff },
		{ 0xc0000000, 0xc00000ff },
		{ 0xc0586300, 0xc05863ff },
		{ 0xc0a80000, 0xc0a8ffff },
		{ 0xc6120000, 0xc613ffff },
		{ 0xe0000000, 0xffffffff },
	};
	uint32_t address;

	for (size_t i = 0; i < array_len(rows); i++) {
		CHECK(network_address_is_inner(rows[i].first));
		CHECK(network_address_is_inner(rows[i].last));
		CHECK(rows[i].first == 0 || !network_address_is_inner(rows[i].first - 1));
		CHECK(rows[i].last == UINT32_MAX || !network_address_is_inner(rows[i].last + 1));
	}
	CHECK(network_address_read("1.2.3.4", &address) && address == 0x01020304);
	CHECK(!network_address_read("1.2.3", &address) && !network_address_read("::1", &address));
}

/* One of each kind of difference; each policy equals itself and no other. */
TEST(two_are_equal_when_they_allow_the_same)
{
	static const char *const texts[] = {
		"{\"mode\":\"none\"}",
		"{\"mode\":\"open\"}",
		RULE("\"ports\":[80]"),
		RULE("\"ports\":[81]"),
		RULE("\"ports\":[80,81]"),
		RULE("\"ports\":[80],\"methods\":[\"GET\"]"),
		RULE("\"ports\":[80],\"paths\":[\"/a\"]"),
		"{\"mode\":\"allow\",\"bootstrap\":[{\"host\":\"a.example.com\",\"ports\":[80]}]}",
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"b.example.com\",\"ports\":[80]}]}",
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"ports\":[80]},"
		"{\"host\":\"b.example.com\",\"ports\":[80]}]}",
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"ports\":[80]}],"
		"\"max_connections\":1}",
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"ports\":[80]}],"
		"\"max_requests\":1}",
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\",\"ports\":[80]}],"
		"\"max_bytes_out\":1}",
	};
	static const char turned[] =
		"{\"mode\":\"allow\",\"rules\":[{\"host\":\"b.example.com\",\"ports\":[80]},"
		"{\"host\":\"a.example.com\",\"ports\":[80]}]}";
	struct network all[array_len(texts)] = { 0 }, other = { 0 };

	for (size_t i = 0; i < array_len(texts); i++)
		reads(texts[i], &all[i]);
	for (size_t i = 0; i < array_len(texts); i++)
		for (size_t k = 0; k < array_len(texts); k++)
			if (network_equal(&all[i], &all[k]) != (i == k))
				test_fail(__FILE__, __LINE__, "%s and %s", texts[i], texts[k]);
	reads(turned, &other);
	CHECK(network_equal(&all[9], &other) && network_equal(&other, &all[9]));
	memcpy(other.secrets[0], "one", 4);
	other.secret_count = 1;
	CHECK(!network_equal(&all[9], &other) && !network_equal(&other, &all[9]));
	memcpy(all[9].secrets[0], "two", 4);
	all[9].secret_count = 1;
	CHECK(!network_equal(&all[9], &other));
	memcpy(all[9].secrets[0], "one", 4);
	CHECK(network_equal(&all[9], &other));
	network_done(&other);
	for (size_t i = 0; i < array_len(texts); i++)
		network_done(&all[i]);
}

TEST(what_is_behind_the_last_rule_is_no_rule)
{
	struct network_rule rules[2] = {
		{ .host = "a.example.com", .ports = { 80 }, .port_count = 1 },
		{ .host = "b.example.com", .ports = { 81 }, .port_count = 1 },
	};
	struct network one = { .mode = NETWORK_ALLOW, .rules = rules, .count = 1 };
	struct network both = { .mode = NETWORK_ALLOW, .rules = rules, .count = 2 };
	struct network second = { .mode = NETWORK_ALLOW, .rules = &rules[1], .count = 1 };

	CHECK(network_allows_port(&one, "a.example.com", 80));
	CHECK(!network_allows_port(&one, "b.example.com", 81));
	CHECK(network_allows_port(&both, "b.example.com", 81));
	CHECK(!network_allows_name(&one, "b.example.com"));
	CHECK(!network_equal(&one, &both) && !network_equal(&both, &one));
	CHECK(!network_equal(&one, &second) && !network_equal(&second, &one));
}

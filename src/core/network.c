#include "core/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "lib/errno-map.h"

/* clang-format off */
static const struct {
	uint32_t base;
	unsigned bits;
} inner[] = {
	{ 0x00000000, 8 },  /* this network */
	{ 0x0a000000, 8 },  /* private */
	{ 0x64400000, 10 }, /* carrier's own */
	{ 0x7f000000, 8 },  /* loopback */
	{ 0xa9fe0000, 16 }, /* link-local, and metadata services */
	{ 0xa83f8110, 32 }, /* a cloud's metadata service at a public address */
	{ 0xac100000, 12 }, /* private */
	{ 0xc0000000, 24 }, /* protocol assignments */
	{ 0xc0586300, 24 }, /* 6to4 relays */
	{ 0xc0a80000, 16 }, /* private */
	{ 0xc6120000, 15 }, /* benchmarks: our own names stand there */
	{ 0xe0000000, 3 },  /* multicast, reserved, broadcast */
};
/* clang-format on */

static const char *const mode_names[NETWORK_MODE_COUNT] = {
	[NETWORK_NONE] = "none",
	[NETWORK_ALLOW] = "allow",
	[NETWORK_OPEN] = "open",
};

const char *network_mode_name(enum network_mode mode)
{
	return mode_names[mode];
}

bool network_address_is_inner(uint32_t address)
{
	for (size_t i = 0; i < array_len(inner); i++)
		if ((address ^ inner[i].base) >> (32 - inner[i].bits) == 0)
			return true;
	return false;
}

bool network_address_read(const char *text, uint32_t *ret)
{
	struct in_addr a;

	if (inet_pton(AF_INET, text, &a) != 1)
		return false;
	*ret = ntohl(a.s_addr);
	return true;
}

static bool label_ok(const char *s, size_t len)
{
	if (len == 0 || len > NETWORK_LABEL_MAX || s[0] == '-' || s[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '-' &&
		    s[i] != '_')
			return false;
	return true;
}

static int no_host(const char *host, const char *why, struct err *e)
{
	err_set(e, ERR_INVALID, "\"%.80s\" %s", host, why);
	return err_fix(e, "Write it like api.example.com or *.example.com, "
			  "without https://, port or path.");
}

int network_host_check(const char *host, struct err *e)
{
	const char *name = strncmp(host, "*.", 2) == 0 ? host + 2 : host;
	const char *last;
	size_t labels = 0;
	uint32_t address;

	if (network_address_read(host, &address))
		return 0;
	for (const char *at = name;; at++) {
		size_t len = strcspn(at, ".");

		if (!label_ok(at, len))
			return no_host(host, "is no host name", e);
		labels++;
		last = at;
		at += len;
		if (!*at)
			break;
	}
	if (isdigit((unsigned char)last[strspn(last, "0123456789")]) ||
	    last[strspn(last, "0123456789")] == '\0')
		return no_host(host, "is neither a name nor an address", e);
	if (labels < 2)
		return no_host(host, "names a whole top-level domain, or no host", e);
	return 0;
}

int network_methods_check(const char *methods, struct err *e)
{
	if (methods[strspn(methods, "ABCDEFGHIJKLMNOPQRSTUVWXYZ ")] != '\0')
		return err_set(e, ERR_INVALID, "a method is of capital letters: %.60s", methods);
	return 0;
}

int network_paths_check(const char *paths, struct err *e)
{
	for (const char *at = paths; *at;) {
		size_t len = strcspn(at, " ");

		if (at[0] != '/' || memchr(at, '?', len) || memchr(at, '%', len))
			return err_set(e, ERR_INVALID,
				       "a path begins with / and is written plainly: %.60s", at);
		if (memchr(at, '*', len - 1))
			return err_set(e, ERR_INVALID, "a path has * only at its end: %.60s", at);
		at += len;
		at += strspn(at, " ");
	}
	return 0;
}

static int bad_port(const struct network_rule *r, uint16_t port, struct err *e)
{
	err_set(e, ERR_INVALID, "%.80s: port %u cannot be allowed", r->host, port);
	return err_reason(e, REASON_INVALID_PORT, 0);
}

static int rule_check(const struct network_rule *r, struct err *e)
{
	if (network_host_check(r->host, e) < 0 || network_methods_check(r->methods, e) < 0 ||
	    network_paths_check(r->paths, e) < 0)
		return -1;
	if (r->port_count < 1 || r->port_count > NETWORK_PORTS_MAX)
		return err_set(e, ERR_INVALID, "%.80s: from 1 to %d ports", r->host,
			       NETWORK_PORTS_MAX);
	for (size_t i = 0; i < r->port_count; i++)
		if (r->ports[i] == 0 || r->ports[i] == 53)
			return bad_port(r, r->ports[i], e);
	return 0;
}

int network_add(struct network *n, const struct network_rule *r, struct err *e)
{
	if (n->count == NETWORK_RULES_MAX)
		return err_set(e, ERR_INVALID, "more than %d rules", NETWORK_RULES_MAX);
	if (rule_check(r, e) < 0)
		return -1;
	n->rules = xrealloc(n->rules, (n->count + 1) * sizeof(*n->rules));
	n->rules[n->count++] = *r;
	return 0;
}

void network_done(struct network *n)
{
	free(n->rules);
	*n = (struct network){ 0 };
}

bool network_has_address(const struct network *n)
{
	uint32_t address;

	for (size_t i = 0; i < n->count; i++)
		if (network_address_read(n->rules[i].host, &address))
			return true;
	return false;
}

static bool has_rule(const struct network *n, const struct network_rule *r)
{
	for (size_t i = 0; i < n->count; i++) {
		const struct network_rule *o = &n->rules[i];

		if (o->bootstrap == r->bootstrap && strcmp(o->host, r->host) == 0 &&
		    strcmp(o->methods, r->methods) == 0 && strcmp(o->paths, r->paths) == 0 &&
		    o->port_count == r->port_count &&
		    memcmp(o->ports, r->ports, r->port_count * sizeof(r->ports[0])) == 0)
			return true;
	}
	return false;
}

static bool has_secret(const struct network *n, const char *name)
{
	for (size_t i = 0; i < n->secret_count; i++)
		if (strcmp(n->secrets[i], name) == 0)
			return true;
	return false;
}

/* All that `b` has is also in `a`. */
static bool includes(const struct network *a, const struct network *b)
{
	for (size_t i = 0; i < b->count; i++)
		if (!has_rule(a, &b->rules[i]))
			return false;
	for (size_t i = 0; i < b->secret_count; i++)
		if (!has_secret(a, b->secrets[i]))
			return false;
	return true;
}

bool network_equal(const struct network *a, const struct network *b)
{
	return a->mode == b->mode && a->max_connections == b->max_connections &&
	       a->max_requests == b->max_requests && a->max_bytes_out == b->max_bytes_out &&
	       includes(a, b) && includes(b, a);
}

bool network_host_matches(const char *host, const char *name)
{
	size_t tail, len = strlen(name);

	if (host[0] != '*')
		return strcmp(host, name) == 0;
	tail = strlen(host + 1); /* ".example.com" */
	return len > tail && strcmp(name + len - tail, host + 1) == 0;
}

static bool rule_is_on(const struct network *n, const struct network_rule *r, const char *name)
{
	return n->mode == NETWORK_ALLOW && !(r->bootstrap && n->locked) &&
	       network_host_matches(r->host, name);
}

static bool rule_has_port(const struct network_rule *r, uint16_t port)
{
	for (size_t i = 0; i < r->port_count; i++)
		if (r->ports[i] == port)
			return true;
	return false;
}

/* Whatever a rule could name, except inner addresses: those take a rule. */
static bool is_open_to(const struct network *n, const char *name)
{
	struct err ignored;
	uint32_t address;

	if (n->mode != NETWORK_OPEN)
		return false;
	if (network_address_read(name, &address))
		return !network_address_is_inner(address);
	return network_host_check(name, &ignored) == 0;
}

bool network_allows_name(const struct network *n, const char *name)
{
	if (is_open_to(n, name))
		return true;
	for (size_t i = 0; i < n->count; i++)
		if (rule_is_on(n, &n->rules[i], name))
			return true;
	return false;
}

bool network_allows_port(const struct network *n, const char *name, uint16_t port)
{
	return is_open_to(n, name) || network_rule_allows(n, name, port);
}

bool network_rule_allows(const struct network *n, const char *name, uint16_t port)
{
	for (size_t i = 0; i < n->count; i++)
		if (rule_is_on(n, &n->rules[i], name) && rule_has_port(&n->rules[i], port))
			return true;
	return false;
}

bool network_wants_http(const struct network *n, const char *name, uint16_t port)
{
	if (is_open_to(n, name))
		return false;
	for (size_t i = 0; i < n->count; i++) {
		const struct network_rule *r = &n->rules[i];

		if (rule_is_on(n, r, name) && rule_has_port(r, port) && !r->methods[0] &&
		    !r->paths[0])
			return false;
	}
	return true;
}

bool network_has_method(const char *methods, const char *method)
{
	size_t len = strlen(method);

	if (!methods[0])
		return true;
	for (const char *at = methods; *at;) {
		size_t word = strcspn(at, " ");

		if (word == len && memcmp(at, method, len) == 0)
			return true;
		at += word;
		at += strspn(at, " ");
	}
	return false;
}

/* Read by every server as it stands: no dots, no doubled or hidden slashes. */
static bool path_is_plain(const char *path, size_t len)
{
	/* clang-format off */
	static const char *const tricks[] = {
		"/./", "/../", "//", "\\", "%2e", "%2f", "%5c", ";", "#",
	};
	/* clang-format on */
	static const char *const ends[] = { "/.", "/.." };

	for (size_t i = 0; i < len; i++)
		for (size_t k = 0; k < array_len(tricks); k++)
			if (len - i >= strlen(tricks[k]) &&
			    strncasecmp(path + i, tricks[k], strlen(tricks[k])) == 0)
				return false;
	for (size_t k = 0; k < array_len(ends); k++)
		if (len >= strlen(ends[k]) &&
		    memcmp(path + len - strlen(ends[k]), ends[k], strlen(ends[k])) == 0)
			return false;
	return true;
}

bool network_has_path(const char *paths, const char *path)
{
	size_t len = strcspn(path, "?"); /* not at a '#': to many servers it is of the path */

	if (!paths[0])
		return true;
	if (!path_is_plain(path, len))
		return false;
	for (const char *at = paths; *at;) {
		size_t word = strcspn(at, " ");
		bool below = at[word - 1] == '*';

		if (below ? len >= word - 1 && memcmp(at, path, word - 1) == 0
			  : len == word && memcmp(at, path, len) == 0)
			return true;
		at += word;
		at += strspn(at, " ");
	}
	return false;
}

bool network_allows_request(const struct network *n, const char *name, uint16_t port,
			    const char *method, const char *path)
{
	if (is_open_to(n, name))
		return true;
	for (size_t i = 0; i < n->count; i++) {
		const struct network_rule *r = &n->rules[i];

		if (rule_is_on(n, r, name) && rule_has_port(r, port) &&
		    network_has_method(r->methods, method) && network_has_path(r->paths, path))
			return true;
	}
	return false;
}

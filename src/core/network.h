/*
 * What a sandbox may reach: names, ports, and for HTTP methods and paths.
 *
 * Nothing that is not named is allowed. A name is allowed as it stands or below
 * a wildcard; an address only where a rule names that very address. Mode `open`
 * allows every name and every public address instead, and has no rules. Decisions
 * only: code that sees a name, a connection or a request asks here.
 */
#pragma once

#include "lib/buf.h"
#include "lib/err.h"

#define NETWORK_HOST_SIZE    254
#define NETWORK_LABEL_MAX    63
#define NETWORK_RULES_MAX    64 /* with those of the first phase */
#define NETWORK_PORTS_MAX    16 /* of one rule */
#define NETWORK_METHODS_SIZE 80
#define NETWORK_PATHS_SIZE   512
#define NETWORK_SECRETS_MAX  16
#define NETWORK_SECRET_NAME  64
#define NETWORK_TEXT_MAX     (64UL * 1024) /* as JSON */

enum network_mode {
	NETWORK_NONE, /* nothing at all */
	NETWORK_ALLOW,
	NETWORK_OPEN,
	NETWORK_MODE_COUNT
};

struct network_rule {
	/* in small letters; "*.name": all names below; an address */
	char host[NETWORK_HOST_SIZE];
	uint16_t ports[NETWORK_PORTS_MAX]; /* never none: without any it is 80 and 443 */
	uint32_t port_count;
	char methods[NETWORK_METHODS_SIZE]; /* "GET HEAD"; empty: any */
	char paths[NETWORK_PATHS_SIZE];     /* "/v1/models /v1/files/" + "*": below; empty: any */
	bool bootstrap;                     /* only until it is locked */
};

struct network {
	enum network_mode mode;
	bool locked;
	struct network_rule *rules;
	size_t count;
	uint64_t max_connections, max_requests, max_bytes_out; /* of its whole life; 0: any */
	char secrets[NETWORK_SECRETS_MAX][NETWORK_SECRET_NAME];
	size_t secret_count;
};

void network_done(struct network *n);
must_check int network_add(struct network *n, const struct network_rule *r, struct err *e);

/* A host of a rule: names of letters, digits and '-', of at least two labels, or an IPv4. */
must_check int network_host_check(const char *host, struct err *e);
must_check int network_methods_check(const char *methods, struct err *e);
must_check int network_paths_check(const char *paths, struct err *e);

/* What its owner wrote, and the same text again. `*n` is to be zero. */
must_check int network_read(const char *text, size_t len, struct network *n, struct err *e);
void network_json(struct buf *out, const struct network *n); /* without what is no policy */

/* True if it names addresses: that is an admin's to allow. */
bool network_has_address(const struct network *n);

/* The same is allowed, in whatever order the rules and secrets stand; the phase is not asked. */
bool network_equal(const struct network *a, const struct network *b);

const char *network_mode_name(enum network_mode mode); /* "open" */

bool network_host_matches(const char *host, const char *name);
bool network_allows_name(const struct network *n, const char *name);
/* `name` is a name or, of a connection to an address, that address. */
bool network_allows_port(const struct network *n, const char *name, uint16_t port);
/* A rule says so, and not the mode alone: only a rule leads to an inner address. */
bool network_rule_allows(const struct network *n, const char *name, uint16_t port);
/* True if only some methods or paths are allowed there: the bytes must be HTTP we can read. */
bool network_wants_http(const struct network *n, const char *name, uint16_t port);
bool network_allows_request(const struct network *n, const char *name, uint16_t port,
			    const char *method, const char *path);

/*
 * One of the words; an empty list has all. A path of the list ends in '*' or is whole; one
 * that a server may read as another ("/v1/../admin", "//", "%2e") is in no list.
 */
bool network_has_method(const char *methods, const char *method);
bool network_has_path(const char *paths, const char *path);

/* True for an address that is not public: loopback, private, link-local, metadata, ... */
bool network_address_is_inner(uint32_t address); /* host order */
must_check bool network_address_read(const char *text, uint32_t *ret);

/* What sandboxes may reach, what they were refused, and the secrets that go out for them. */
#pragma once

#include "core/network.h"
#include "core/sandbox.h"
#include "store/store.h"

#define STORE_SECURITY_MAX 1000 /* kept of a sandbox, and of one call */
#define STORE_SECRETS_MAX  1000 /* of one owner */
#define STORE_SEALED_SIZE  8193

struct network_use {
	uint64_t connections, requests, bytes_out, bytes_in;
};

struct network_row {
	char owner[SANDBOX_OWNER_SIZE];
	char policy[NETWORK_TEXT_MAX + 1]; /* JSON, as core/network reads it */
	bool locked;
	uint64_t version;
	struct network_use use;
};

/* ERR_NOT_FOUND: none was ever set, so nothing is allowed. */
must_check int store_network_get(struct store *s, const char *sandbox, struct network_row *ret,
				 struct err *e);

/* The same; of one without a row: nothing is allowed, and that is version 1. */
must_check int store_network_row(struct store *s, const char *sandbox, struct network_row *row,
				 struct err *e);

/*
 * Those of many sandboxes at once (`ids`, with a space between two) that have a row, each with the
 * limits of its sandbox; `known`: there is such a sandbox.
 */
struct network_told {
	char sandbox[SANDBOX_ID_SIZE];
	struct network_row row;
	bool known;
	struct limits limits;
};
typedef void network_told_fn(const struct network_told *told, void *arg);
must_check int store_networks_get(struct store *s, const char *ids, network_told_fn *on_row,
				  void *arg, struct err *e);

/*
 * A new policy; the version grows. With `unlocked` only if it is not locked, else
 * ERR_CONFLICT. A first one is inserted.
 */
struct network_put {
	const char *sandbox, *owner, *policy;
	bool unlocked;
};
must_check int store_network_put(struct store *s, const struct network_put *put,
				 struct network_row *ret, struct err *e);

/* From here on only what is not of the first phase. Again: the same. */
must_check int store_network_lock(struct store *s, const char *sandbox, const char *owner,
				  struct network_row *ret, struct err *e);

/* What was used; less than is written changes nothing. */
must_check int store_network_used(struct store *s, const char *sandbox, const char *owner,
				  const struct network_use *use, struct err *e);

/* Every policy that names this secret is told anew: its version grows. */
must_check int store_network_touch(struct store *s, const char *owner, const char *secret,
				   struct err *e);

/*
 * Sandboxes of a host with a policy, behind `after`: id and version, a page of them. Damaged
 * rows are left out: how many, and `e` names the first.
 */
#define STORE_NETWORK_PAGE 500
typedef void network_version_fn(const char *sandbox, uint64_t version, void *arg);
must_check int store_network_versions(struct store *s, const char *host, const char *after,
				      network_version_fn *on_row, void *arg, struct err *e);

struct security_event {
	uint64_t id;
	char sandbox_id[SANDBOX_ID_SIZE];
	uint64_t at_ms;
	char kind[24];
	char name[NETWORK_HOST_SIZE];
	uint64_t port;
	char rule[NETWORK_HOST_SIZE];
	uint64_t count;
};
must_check int store_security_add(struct store *s, const struct security_event *ev, struct err *e);
must_check int store_security_trim(struct store *s, const char *sandbox, struct err *e);

typedef void security_event_fn(const struct security_event *ev, void *arg);
must_check int store_security_list(struct store *s, const char *sandbox, uint64_t after,
				   security_event_fn *on_row, void *arg, struct err *e);

struct secret {
	char owner[SANDBOX_OWNER_SIZE];
	char name[NETWORK_SECRET_NAME];
	char host[NETWORK_HOST_SIZE];
	char methods[NETWORK_METHODS_SIZE];
	char paths[NETWORK_PATHS_SIZE];
	char header[64];
	char sealed[STORE_SEALED_SIZE];
	uint64_t changed_ms;
};
must_check int store_secret_put(struct store *s, const struct secret *secret, struct err *e);
must_check int store_secret_get(struct store *s, const char *owner, const char *name,
				struct secret *ret, struct err *e);
must_check int store_secret_remove(struct store *s, const char *owner, const char *name,
				   struct secret *ret, struct err *e);
typedef void secret_fn(const struct secret *secret, void *arg);

/* Secrets of these names (with a space between two), of the owners of these sandboxes. */
must_check int store_secrets_named(struct store *s, const char *ids, const char *names,
				   secret_fn *on_row, void *arg, struct err *e);
must_check int store_secret_list(struct store *s, const char *owner, secret_fn *on_row, void *arg,
				 struct err *e);

#include "berthd/netpolicy/policy-encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/netpolicy/vault.h"
#include "lib/str.h"
#include "store/sandbox.h"

#define FIRST_VERSION 1 /* of a box without a row */

static void add(struct wire *w, enum egress_kind kind, const void *record)
{
	struct buf *b = &w->packets[w->count++];

	*b = buf_make(EGRESS_PACKET_MAX);
	egress_encode(b, kind, record);
}

static void add_rule(struct wire *w, const struct network_rule *r)
{
	struct egress_rule wire = { .bootstrap = r->bootstrap };
	size_t len = 0;

	memcpy(wire.host, r->host, sizeof(wire.host));
	memcpy(wire.methods, r->methods, sizeof(wire.methods));
	memcpy(wire.paths, r->paths, sizeof(wire.paths));
	for (size_t i = 0; i < r->port_count; i++)
		len += (size_t)snprintf(wire.ports + len, sizeof(wire.ports) - len, "%s%u",
					i ? " " : "", r->ports[i]);
	add(w, EGRESS_RULE, &wire);
}

static int add_secret(struct berthd *b, struct store *s, const char *owner, const char *name,
		      struct wire *w, struct err *e)
{
	cleanup(buf_done) struct buf value = buf_make(EGRESS_VALUE_SIZE - 1);
	struct egress_secret wire = { 0 };
	struct secret k = { 0 };

	if (store_secret_get(s, owner, name, &k, e) < 0 || vault_open(b->vault, &k, &value, e) < 0)
		return -1;
	memcpy(wire.name, k.name, sizeof(wire.name));
	memcpy(wire.host, k.host, sizeof(wire.host));
	memcpy(wire.methods, k.methods, sizeof(wire.methods));
	memcpy(wire.paths, k.paths, sizeof(wire.paths));
	memcpy(wire.header, k.header, sizeof(wire.header));
	if (!str_copy(wire.value, sizeof(wire.value), buf_str(&value)))
		return err_set(e, ERR_INVALID, "secret %s is too long", name);
	add(w, EGRESS_SECRET, &wire);
	explicit_bzero(&wire, sizeof(wire));
	if (value.data)
		explicit_bzero(value.data, value.len);
	return 0;
}

/* Of the policy's limit and the sandbox's own the tighter one; 0 is none. */
static uint64_t tighter(uint64_t a, int64_t b)
{
	if (a == 0 || b <= 0)
		return a ? a : (uint64_t)(b > 0 ? b : 0);
	return a < (uint64_t)b ? a : (uint64_t)b;
}

static void fill(struct egress_policy *p, const struct network_row *row, const struct network *n,
		 const struct limits *l)
{
	p->version = row->version;
	p->mode = n->mode;
	p->locked = row->locked;
	p->max_connections = tighter(n->max_connections, l->of[LIMIT_CONNECTIONS]);
	p->max_requests = tighter(n->max_requests, l->of[LIMIT_REQUESTS]);
	p->max_bytes_out = tighter(n->max_bytes_out, l->of[LIMIT_BYTES_OUT]);
	p->connections = row->use.connections;
	p->requests = row->use.requests;
	p->bytes_out = row->use.bytes_out;
	p->bytes_in = row->use.bytes_in;
}

/* The head says how many follow, so it is written first and known last. */
static void add_policy(struct berthd *b, const struct network *n, struct egress_policy *p,
		       struct wire *w)
{
	p->rules = (uint32_t)n->count;
	p->secrets = (uint32_t)n->secret_count;
	vault_seed(b->vault, p->sandbox, p->ca_seed);
	add(w, EGRESS_POLICY, p);
	for (size_t i = 0; i < n->count; i++)
		add_rule(w, &n->rules[i]);
}

static int add_secrets(struct berthd *b, struct store *s, const char *owner,
		       const struct network *n, struct wire *w, struct err *e)
{
	for (size_t i = 0; i < n->secret_count; i++)
		if (add_secret(b, s, owner, n->secrets[i], w, e) < 0)
			return -1;
	return 0;
}

static void close_box(struct wire *w, struct egress_policy *p, const struct err *why)
{
	wire_done(w);
	snprintf(w->why, sizeof(w->why), "%.199s", why->msg);
	p->mode = p->rules = p->secrets = 0;
	add(w, EGRESS_POLICY, p);
}

int wire_make(struct berthd *b, struct store *s, const struct egress_policy *of,
	      struct wire *ret, struct err *e)
{
	cleanup(free_ptr) struct network_row *row = xcalloc(1, sizeof(*row));
	cleanup(network_done) struct network n = { 0 };
	struct sandbox sb = { 0 };
	struct egress_policy p = *of;
	int readable;

	*ret = (struct wire){ .version = FIRST_VERSION };
	p.version = FIRST_VERSION;
	if (store_network_get(s, p.sandbox, row, e) < 0) {
		if (e->code != ERR_NOT_FOUND)
			return -1;
		add(ret, EGRESS_POLICY, &p);
		return 0;
	}
	if (store_sandbox_get(s, NULL, p.sandbox, &sb, e) < 0)
		return -1;
	readable = network_read(row->policy, strlen(row->policy), &n, e);
	fill(&p, row, &n, &sb.limits);
	ret->version = row->version;
	if (readable < 0) {
		close_box(ret, &p, e);
		return 0;
	}
	add_policy(b, &n, &p, ret);
	if (add_secrets(b, s, row->owner, &n, ret, e) == 0)
		return 0;
	if (e->code == ERR_BUSY) {
		wire_done(ret);
		return -1;
	}
	close_box(ret, &p, e);
	return 0;
}

void wire_done(struct wire *w)
{
	for (size_t i = 0; i < w->count; i++) {
		if (w->packets[i].data)
			explicit_bzero(w->packets[i].data, w->packets[i].len);
		buf_done(&w->packets[i]);
	}
	w->count = 0;
}

#include "berthd/netpolicy/policy-encode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/netpolicy/vault.h"
#include "lib/str.h"

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

static int add_secret(struct berthd *b, const struct secret *k, struct wire *w, struct err *e)
{
	cleanup(buf_done) struct buf value = buf_make(EGRESS_VALUE_SIZE - 1);
	struct egress_secret wire = { 0 };

	if (vault_open(b->vault, k, &value, e) < 0)
		return -1;
	memcpy(wire.name, k->name, sizeof(wire.name));
	memcpy(wire.host, k->host, sizeof(wire.host));
	memcpy(wire.methods, k->methods, sizeof(wire.methods));
	memcpy(wire.paths, k->paths, sizeof(wire.paths));
	memcpy(wire.header, k->header, sizeof(wire.header));
	if (!str_copy(wire.value, sizeof(wire.value), buf_str(&value)))
		return err_set(e, ERR_INVALID, "secret %s is too long", k->name);
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

struct secrets {
	struct secret *items;
	size_t count;
};

static void secrets_done(const struct secrets *all)
{
	free(all->items);
}

static void on_secret(const struct secret *k, void *arg)
{
	struct secrets *all = arg;

	all->items = xrealloc(all->items, (all->count + 1) * sizeof(*all->items));
	all->items[all->count++] = *k;
}

static const struct secret *find_secret(const struct secrets *all, const char *owner,
					const char *name)
{
	for (size_t i = 0; i < all->count; i++)
		if (strcmp(all->items[i].name, name) == 0 &&
		    strcmp(all->items[i].owner, owner) == 0)
			return &all->items[i];
	return NULL;
}

static int add_secrets(struct berthd *b, const struct wire_order *o, const struct secrets *all,
		       struct err *e)
{
	for (size_t i = 0; i < o->network.secret_count; i++) {
		const char *name = o->network.secrets[i];
		const struct secret *k = find_secret(all, o->owner, name);

		if (!k)
			return err_set(e, ERR_NOT_FOUND, "there is no secret \"%.60s\"", name);
		if (add_secret(b, k, o->ret, e) < 0)
			return -1;
	}
	return 0;
}

static void close_box(struct wire *w, struct egress_policy *p, const struct err *why)
{
	wire_done(w);
	snprintf(w->why, sizeof(w->why), "%.199s", why->msg);
	p->mode = p->rules = p->secrets = 0;
	add(w, EGRESS_POLICY, p);
}

struct orders {
	struct wire_order *items;
	size_t count;
};

static void on_row(const struct network_told *told, void *arg)
{
	const struct orders *all = arg;

	for (size_t i = 0; i < all->count; i++) {
		struct wire_order *o = &all->items[i];

		if (o->found || strcmp(o->of.sandbox, told->sandbox) != 0)
			continue;
		o->found = true;
		o->known = told->known;
		memcpy(o->owner, told->row.owner, sizeof(o->owner));
		if (!told->known)
			err_set(&o->why, ERR_NOT_FOUND, "there is no record of %s", told->sandbox);
		else if (network_read(told->row.policy, strlen(told->row.policy), &o->network,
				      &o->why) < 0)
			o->known = false;
		fill(&o->of, &told->row, &o->network, &told->limits);
	}
}

static void make_one(struct berthd *b, struct wire_order *o, const struct secrets *all)
{
	o->ret->version = o->of.version;
	if (!o->found)
		return add(o->ret, EGRESS_POLICY, &o->of); /* nothing is allowed */
	if (!o->known)
		return close_box(o->ret, &o->of, &o->why);
	add_policy(b, &o->network, &o->of, o->ret);
	if (add_secrets(b, o, all, &o->why) < 0)
		close_box(o->ret, &o->of, &o->why);
	o->ret->open = o->of.mode != NETWORK_NONE;
}

static int read_all(struct store *s, struct orders *all, struct secrets *secrets, struct err *e)
{
	cleanup(buf_done) struct buf ids = buf_make(all->count * SANDBOX_ID_SIZE);
	cleanup(buf_done) struct buf names = buf_make(
		all->count * NETWORK_SECRETS_MAX * NETWORK_SECRET_NAME + 1);

	for (size_t i = 0; i < all->count; i++)
		buf_addf(&ids, "%s%s", i ? " " : "", all->items[i].of.sandbox);
	if (store_networks_get(s, buf_str(&ids), on_row, all, e) < 0)
		return -1;
	for (size_t i = 0; i < all->count; i++)
		for (size_t k = 0; k < all->items[i].network.secret_count; k++)
			buf_addf(&names, "%s%s", names.len ? " " : "",
				 all->items[i].network.secrets[k]);
	if (names.len == 0)
		return 0;
	return store_secrets_named(s, buf_str(&ids), buf_str(&names), on_secret, secrets, e);
}

int wires_make(struct berthd *b, struct store *s, struct wire_order *orders, size_t count,
	       struct err *e)
{
	cleanup(secrets_done) struct secrets secrets = { 0 };
	struct orders all = { orders, count };
	int r;

	for (size_t i = 0; i < count; i++) {
		*orders[i].ret = (struct wire){ 0 };
		orders[i].of.version = FIRST_VERSION;
	}
	r = read_all(s, &all, &secrets, e);
	for (size_t i = 0; i < count; i++) {
		if (r == 0)
			make_one(b, &orders[i], &secrets);
		network_done(&orders[i].network);
	}
	return r;
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

/* Policies of many sandboxes as packets, from a real PostgreSQL: in two queries, however many. */
#include <stdlib.h>
#include <unistd.h>

#include "berthd/netpolicy/policy-encode.h"
#include "berthd/netpolicy/vault.h"
#include "store-world.h"
#include "test.h"

#define MANY 100

struct room {
	struct world w;
	struct vault vault;
	struct berthd *b;
	struct wire wires[MANY];
	struct wire_order orders[MANY];
};

static void id_of(int n, char out[SANDBOX_ID_SIZE])
{
	snprintf(out, SANDBOX_ID_SIZE, "sb_c1_%020d", n);
}

static void set_policy(struct room *r, int n, const char *owner, const char *policy)
{
	char id[SANDBOX_ID_SIZE];
	struct network_put put = { .sandbox = id, .owner = owner, .policy = policy };
	cleanup(free_ptr) struct network_row *row = xcalloc(1, sizeof(*row));
	struct err e;

	id_of(n, id);
	CHECK_OK(store_network_put(r->w.s, &put, row, &e), &e);
}

static void add_secret(struct room *r, const char *owner, const char *value)
{
	struct secret k = { .name = "token", .host = "api.example.com", .header = "Authorization" };
	struct err e;

	snprintf(k.owner, sizeof(k.owner), "%s", owner);
	CHECK_OK(vault_seal(&r->vault, value, &k, &e), &e);
	CHECK_OK(store_secret_put(r->w.s, &k, &e), &e);
}

static struct room *room_make(void)
{
	struct room *r = xcalloc(1, sizeof(*r));
	char path[] = "/tmp/berth-wires-XXXXXX";
	struct err e;

	r->w = world_make();
	r->b = xcalloc(1, sizeof(*r->b));
	r->b->vault = &r->vault;
	CHECK(mkdtemp(path));
	snprintf(r->wires[0].why, sizeof(r->wires[0].why), "%s/key", path);
	CHECK_OK(vault_load(&r->vault, r->wires[0].why, &e), &e);
	unlink(r->wires[0].why);
	rmdir(path);
	for (int i = 0; i < MANY; i++) {
		id_of(i, r->orders[i].of.sandbox);
		r->orders[i].of.generation = 1;
		r->orders[i].of.address = 7;
		r->orders[i].ret = &r->wires[i];
		add(r->w.s, r->orders[i].of.sandbox, i % 2 ? "ann" : "bob");
	}
	return r;
}

static void room_done(struct room **at)
{
	struct room *r = *at;

	for (int i = 0; i < MANY; i++)
		wire_done(&r->wires[i]);
	world_done(&r->w);
	free(r->b);
	free(r);
}

static union egress_any *packet(const struct room *r, int n, size_t at, enum egress_kind wants)
{
	static union egress_any any;
	const struct buf *b = &r->wires[n].packets[at];
	enum egress_kind kind;
	struct err e;

	CHECK(at < r->wires[n].count);
	CHECK_OK(egress_decode((struct bytes){ (const uint8_t *)b->data, b->len }, &kind, &any, &e),
		 &e);
	CHECK_INT(kind, wants);
	return &any;
}

TEST(a_hundred_policies_are_read_in_two_queries)
{
	cleanup(room_done) struct room *r = room_make();
	struct err e;
	uint64_t before;

	for (int i = 0; i < MANY; i++)
		set_policy(r, i, i % 2 ? "ann" : "bob",
			   "{\"mode\":\"allow\",\"rules\":[{\"host\":\"api.example.com\"}],"
			   "\"secrets\":[\"token\"]}");
	add_secret(r, "ann", "of ann");
	add_secret(r, "bob", "of bob");
	before = store_counts(r->w.s).transactions;
	CHECK_OK(wires_make(r->b, r->w.s, r->orders, MANY, &e), &e);
	CHECK_INT(store_counts(r->w.s).transactions - before, 2);
	for (int i = 0; i < MANY; i++) {
		CHECK_INT(r->wires[i].count, 3);
		CHECK_STR(packet(r, i, 0, EGRESS_POLICY)->policy.sandbox, r->orders[i].of.sandbox);
		CHECK_STR(packet(r, i, 1, EGRESS_RULE)->rule.host, "api.example.com");
		CHECK_STR(packet(r, i, 2, EGRESS_SECRET)->secret.value,
			  i % 2 ? "of ann" : "of bob");
	}
}

TEST(one_that_cannot_be_told_is_closed_and_the_others_are_told)
{
	cleanup(room_done) struct room *r = room_make();
	struct err e;

	set_policy(r, 0, "bob", "{\"mode\":\"allow\",\"rules\":[{\"host\":\"a.example.com\"}]}");
	set_policy(r, 1, "ann", "{\"mode\":\"allow\",\"secrets\":[\"token\"]}"); /* bob's */
	set_policy(r, 2, "bob", "{\"mode\":\"allow\",\"secrets\":[\"token\"]}");
	set_policy(r, 3, "ann", "{\"mode\":\"what\"}");
	set_policy(r, 200, "ann", "{\"mode\":\"allow\"}");
	add_secret(r, "bob", "of bob");
	id_of(200, r->orders[5].of.sandbox); /* a policy without a record */
	CHECK_OK(wires_make(r->b, r->w.s, r->orders, MANY, &e), &e);
	CHECK_INT(packet(r, 0, 0, EGRESS_POLICY)->policy.mode, NETWORK_ALLOW);
	CHECK_INT(r->wires[0].count, 2);
	CHECK_INT(packet(r, 1, 0, EGRESS_POLICY)->policy.mode, 0);
	CHECK(strstr(r->wires[1].why, "no secret"));
	CHECK_INT(packet(r, 2, 0, EGRESS_POLICY)->policy.secrets, 1);
	CHECK_STR(packet(r, 2, 1, EGRESS_SECRET)->secret.value, "of bob");
	CHECK_INT(packet(r, 3, 0, EGRESS_POLICY)->policy.mode, 0);
	CHECK(r->wires[3].why[0]);
	CHECK_INT(packet(r, 4, 0, EGRESS_POLICY)->policy.mode, 0); /* none was ever set */
	CHECK_INT(r->wires[4].version, 1);
	CHECK_STR(r->wires[4].why, "");
	CHECK_INT(packet(r, 5, 0, EGRESS_POLICY)->policy.mode, 0);
	CHECK(strstr(r->wires[5].why, "no record"));
}

/* What berth-egress reads: names, hellos, records; and its boxes. */
#include "egress/box.h"
#include "egress/dns.h"
#include "egress/hello.h"
#include "test.h"

static const uint8_t question[] = { 0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, 'A', 'p', 'i', 7, 'e',
				    'x', 'a', 'm', 'p', 'l', 'e', 3, 'c', 'o', 'm', 0, 0, 1, 0, 1 };

TEST(a_question_and_its_answer)
{
	cleanup(buf_done) struct buf out = buf_make(512);
	struct dns_question q;

	CHECK(dns_read((struct bytes){ question, sizeof(question) }, &q));
	CHECK_STR(q.name, "api.example.com");
	CHECK(q.id == 7 && q.type == DNS_TYPE_A && q.class == DNS_CLASS_IN && !q.strange);
	dns_answer(&out, (struct bytes){ question, sizeof(question) }, &q, DNS_OK, 0xc6120001);
	CHECK_INT(out.len, sizeof(question) + 16);
	CHECK(memcmp(out.data + out.len - 4, "\xc6\x12\x00\x01", 4) == 0);
	for (size_t len = 0; len < sizeof(question); len++)
		CHECK(!dns_read((struct bytes){ question, len }, &q));
}

TEST(a_name_means_an_address_to_its_box_alone)
{
	static struct boxes all;
	struct box *a = boxes_add(&all, "a", 1), *b = boxes_add(&all, "b", 2);
	uint32_t first = box_name_address(a, "one.example.com");
	char name[32];

	CHECK(box_address_is_name(first));
	CHECK_INT(box_name_address(a, "one.example.com"), first);
	CHECK_STR(box_name_of(a, first), "one.example.com");
	CHECK(!box_name_of(b, first));
	for (int i = 0; i < BOX_NAMES_MAX; i++) {
		snprintf(name, sizeof(name), "n%d.example.com", i);
		CHECK_STR(box_name_of(a, box_name_address(a, name)), name);
	}
	CHECK(strcmp(box_name_of(a, first), "one.example.com") != 0); /* the oldest went */
	CHECK(!box_name_of(a, BOX_NAMES_BASE));
	CHECK(!box_name_of(a, BOX_NAMES_BASE + 1 + BOX_NAMES_MAX));
	CHECK(boxes_at(&all, 2) == b && boxes_find(&all, "a") == a);
	boxes_remove(&all, a);
	CHECK(!boxes_at(&all, 1) && !boxes_find(&all, "a"));
	boxes_remove(&all, b);
}

TEST(tokens_come_back_with_time)
{
	struct tokens t = { 0 };

	for (int i = 0; i < 5; i++)
		CHECK(tokens_take(&t, 5, 2, 1000));
	CHECK(!tokens_take(&t, 5, 2, 1000));
	CHECK(!tokens_take(&t, 5, 2, 1400));
	CHECK(tokens_take(&t, 5, 2, 1900));
	CHECK(!tokens_take(&t, 5, 2, 1900));
	CHECK(tokens_take(&t, 5, 2, 1000000));
}

TEST(refusals_are_bounded_and_counted)
{
	static struct boxes all;
	struct box *b = boxes_add(&all, "a", 1);
	char name[32];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "n%d.example.com", i % 50);
		box_refused(b, &(struct refusal){ "name", name, "no rule", 53 }, 1);
	}
	CHECK_INT(b->event_count, BOX_EVENTS_MAX);
	CHECK_INT(b->events[0].count, 2);
	CHECK_INT(b->events_lost, 100 - 2 * BOX_EVENTS_MAX);
	boxes_remove(&all, b);
}

TEST(records_are_the_same_on_the_other_side)
{
	cleanup(buf_done) struct buf wire = buf_make(EGRESS_PACKET_MAX);
	struct egress_secret s = { .name = "n", .host = "h.example.com", .value = "v" };
	union egress_any any;
	struct bytes whole;
	enum egress_kind kind;
	struct err e;

	egress_encode(&wire, EGRESS_SECRET, &s);
	whole = (struct bytes){ (uint8_t *)wire.data, wire.len };
	CHECK(egress_decode(whole, &kind, &any, &e) == 0);
	CHECK(kind == EGRESS_SECRET && memcmp(&any.secret, &s, sizeof(s)) == 0);
	while (whole.len-- > 0)
		CHECK(egress_decode(whole, &kind, &any, &e) < 0);
}

/* What berth-egress reads: names, records; and its boxes. */
#include "egress/box.h"
#include "egress/dns.h"
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

/* A question of one name, written as it stands on the wire; `flags` is its third byte. */
static size_t ask(uint8_t *m, const char *wire_name, size_t len, uint8_t flags)
{
	static const uint8_t head[12] = { 0x12, 0x34, 0, 0, 0, 1, 0, 9, 0, 9, 0, 9 };

	memcpy(m, head, sizeof(head));
	m[2] = flags;
	memcpy(m + 12, wire_name, len);
	memcpy(m + 12 + len, "\0\x1c\0\1", 4);
	return 12 + len + 4;
}

static bool is_read(const char *wire_name, size_t len, struct dns_question *q)
{
	uint8_t m[600];

	return dns_read((struct bytes){ m, ask(m, wire_name, len, 1) }, q);
}

TEST(an_answer_is_so_byte_by_byte)
{
	static const uint8_t head[] = { 0, 7, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0 };
	static const uint8_t tail[] = { 0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 1, 2, 3, 4 };
	cleanup(buf_done) struct buf out = buf_make(512);
	struct bytes asked = { question, sizeof(question) };
	struct dns_question q;

	CHECK(dns_read(asked, &q) && q.recursion);
	CHECK_INT(q.end, sizeof(question));
	dns_answer(&out, asked, &q, DNS_OK, 0x01020304);
	CHECK(memcmp(out.data, head, 12) == 0);
	CHECK(memcmp(out.data + 12, question + 12, sizeof(question) - 12) == 0);
	CHECK(memcmp(out.data + sizeof(question), tail, sizeof(tail)) == 0);
	CHECK_INT(out.len, sizeof(question) + sizeof(tail));
}

TEST(a_refusal_has_no_address_and_no_wish_that_was_not_asked)
{
	static const uint8_t head[] = { 0x12, 0x34, 0x80, 0x85, 0, 1, 0, 0, 0, 0, 0, 0 };
	cleanup(buf_done) struct buf out = buf_make(512);
	struct dns_question q;
	uint8_t m[64];
	struct bytes asked = { m, ask(m, "\1a\3com", 7, 0) };

	CHECK(dns_read(asked, &q) && !q.recursion && q.type == DNS_TYPE_AAAA);
	CHECK_INT(q.id, 0x1234);
	dns_answer(&out, asked, &q, DNS_REFUSED, 0);
	CHECK_INT(out.len, asked.len);
	CHECK(memcmp(out.data, head, 12) == 0);
}

TEST(what_follows_the_question_is_not_of_it)
{
	struct dns_question q;
	uint8_t m[64];
	size_t len = ask(m, "\1a\3com", 7, 1);

	memset(m + len, 0xff, 8);
	CHECK(dns_read((struct bytes){ m, len + 8 }, &q));
	CHECK_INT(q.end, len);
}

TEST(only_a_question_is_read_and_only_one)
{
	static const uint8_t flags[] = { 0x80, 0x81, 0x08, 0x40, 0x78 };
	struct dns_question q;
	uint8_t m[64];

	for (size_t i = 0; i < sizeof(flags); i++)
		CHECK(!dns_read((struct bytes){ m, ask(m, "\1a\3com", 7, flags[i]) }, &q));
	(void)ask(m, "\1a\3com", 7, 0x07); /* truncated, authoritative: nothing to us */
	CHECK(dns_read((struct bytes){ m, 12 + 7 + 4 }, &q));
	m[5] = 0;
	CHECK(!dns_read((struct bytes){ m, 12 + 7 + 4 }, &q));
	m[5] = 2;
	CHECK(!dns_read((struct bytes){ m, 12 + 7 + 4 }, &q));
}

TEST(bytes_that_no_host_has_are_strange)
{
	struct dns_question q;

	CHECK(is_read("\6A-z_09\3com", 12, &q) && !q.strange);
	CHECK_STR(q.name, "a-z_09.com");
	CHECK(is_read("\3a.b\3com", 9, &q) && q.strange);
	CHECK_STR(q.name, "a?b.com");
	CHECK(is_read("\3\xc3\xa4\0\3com", 9, &q) && q.strange);
	CHECK_STR(q.name, "???.com");
	CHECK(is_read("", 1, &q) && !q.strange);
	CHECK_STR(q.name, "");
}

TEST(labels_and_names_have_a_longest)
{
	char name[300];
	struct dns_question q;

	memset(name, 'a', sizeof(name));
	for (int i = 0; i < 4; i++)
		name[i * 64] = 63;
	name[192] = 61; /* 63 + 63 + 63 + 61 and three dots are 253 */
	name[254] = 0;
	CHECK(is_read(name, 255, &q));
	CHECK_INT(strlen(q.name), 253);
	name[192] = 62;
	name[255] = 0;
	CHECK(!is_read(name, 256, &q));
	name[0] = 63;
	name[64] = 0;
	CHECK(is_read(name, 65, &q));
	CHECK_INT(strlen(q.name), 63);
	name[0] = 64;
	name[65] = 0;
	CHECK(!is_read(name, 66, &q));
	CHECK(!is_read("\xc0\x0c", 2, &q)); /* a pointer */
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
	CHECK_INT(kind, EGRESS_SECRET);
	CHECK_STR(any.secret.name, s.name);
	CHECK_STR(any.secret.host, s.host);
	CHECK_STR(any.secret.value, s.value);
	CHECK_STR(any.secret.header, "");
	while (whole.len-- > 0)
		CHECK(egress_decode(whole, &kind, &any, &e) < 0);
}

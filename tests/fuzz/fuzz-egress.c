/* What sandboxes and berthd send to berth-egress; the first byte says which. */
#include <stdlib.h>
#include <string.h>

#include "egress/dns.h"
#include "egress/hello.h"
#include "proto/egress.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void question(struct bytes in)
{
	cleanup(buf_done) struct buf out = buf_make(8192);
	struct dns_question q, again;

	if (!dns_read(in, &q))
		return;
	dns_answer(&out, in, &q, DNS_OK, 0xc6120001);
	if (out.len != q.end + 16 || strlen(q.name) >= sizeof(q.name))
		abort();
	out.data[2] = 1; /* an answer, asked: the same question */
	out.data[3] = 0;
	if (!dns_read((struct bytes){ (uint8_t *)out.data, out.len }, &again) ||
	    strcmp(again.name, q.name) != 0)
		abort();
}

static void hello(struct bytes in)
{
	char name[HELLO_NAME_SIZE];

	if (hello_read(in, name) == HELLO_READ && strlen(name) >= sizeof(name))
		abort();
}

static void record(struct bytes in)
{
	cleanup(buf_done) struct buf again = buf_make(64UL * 1024);
	union egress_any any = { 0 };
	enum egress_kind kind;
	struct err e;

	if (in.len > EGRESS_PACKET_MAX || egress_decode(in, &kind, &any, &e) < 0)
		return;
	egress_encode(&again, kind, &any);
	if (again.len != in.len || memcmp(again.data, in.data, in.len) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(struct bytes) = { question, hello, record };

	if (size > 0)
		readers[data[0] % 3]((struct bytes){ data + 1, size - 1 });
	return 0;
}

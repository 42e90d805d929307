/* What sandboxes and berthd send to berth-egress; the first byte says which. */
#include <stdlib.h>
#include <string.h>

#include "egress/dns.h"
#include "egress/hello.h"
#include "egress/redact.h"
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

static void hide(const char *secret, struct bytes in, size_t piece, struct buf *out)
{
	struct redact r;

	redact_init(&r);
	redact_add(&r, secret);
	for (size_t at = 0; at < in.len; at += piece)
		redact_feed(&r, (const char *)in.data + at,
			    in.len - at < piece ? in.len - at : piece, false, out);
	redact_feed(&r, NULL, 0, true, out);
	redact_done(&r);
}

/* The first 8 bytes are the secret: it is gone, lengths stay, and the pieces change nothing. */
static void answer(struct bytes in)
{
	cleanup(buf_done) struct buf whole = buf_make(64UL * 1024), cut = buf_make(64UL * 1024);
	char secret[9] = "";

	if (in.len < 8 || in.len > 4096)
		return;
	for (size_t i = 0; i < 8; i++) /* printable, and not what hides it */
		secret[i] = (char)(' ' + in.data[i] % 95);
	if (strpbrk(secret, "*\\"))
		return;
	in = (struct bytes){ in.data + 8, in.len - 8 };
	hide(secret, in, in.len + 1, &whole);
	hide(secret, in, 1 + (size_t)secret[0] % 7, &cut);
	if (whole.len != in.len || cut.len != in.len)
		abort();
	if (in.len > 0 && (memcmp(whole.data, cut.data, in.len) != 0 ||
			   memmem(whole.data, whole.len, secret, 8)))
		abort();
	for (size_t i = 0; i < in.len; i++)
		if (whole.data[i] != '*' && whole.data[i] != (char)in.data[i])
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const readers[])(struct bytes) = { question, hello, record, answer };

	if (size > 0)
		readers[data[0] % 4]((struct bytes){ data + 1, size - 1 });
	return 0;
}

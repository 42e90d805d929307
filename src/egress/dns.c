#include "egress/dns.h"

#include <ctype.h>

#include "proto/writer.h"

#define LABEL_MAX  63
#define TTL_S      60
#define FLAG_QR    0x8000
#define FLAG_RD    0x0100
#define FLAG_RA    0x0080
#define OPCODE     0x7800
#define NAME_ABOVE 0xc00c /* the name of the question, behind the head of 12 bytes */

static bool usual(unsigned char c)
{
	return isalnum(c) || c == '-' || c == '_';
}

static bool read_name(struct reader *r, struct dns_question *q)
{
	size_t len = 0;

	for (;;) {
		uint8_t label = reader_u8(r);
		struct bytes b;

		if (r->bad || label > LABEL_MAX)
			return false;
		if (label == 0)
			break;
		b = reader_bytes(r, label);
		if (r->bad || label + 2U > DNS_NAME_SIZE - len)
			return false;
		if (len > 0)
			q->name[len++] = '.';
		for (size_t i = 0; i < label; i++) {
			bool plain = usual(b.data[i]);

			q->strange |= !plain;
			q->name[len++] = plain ? (char)tolower(b.data[i]) : '?';
		}
	}
	q->name[len] = '\0';
	return true;
}

bool dns_read(struct bytes message, struct dns_question *ret)
{
	struct reader r = reader_make(message.data, message.len);
	struct dns_question q = { .id = reader_u16(&r) };
	uint16_t flags = reader_u16(&r);
	uint16_t questions = reader_u16(&r);

	(void)reader_u16(&r); /* answers, authorities, additions: nothing of theirs is used */
	(void)reader_u16(&r);
	(void)reader_u16(&r);
	if (r.bad || (flags & (FLAG_QR | OPCODE)) || questions != 1 || !read_name(&r, &q))
		return false;
	q.type = reader_u16(&r);
	q.class = reader_u16(&r);
	if (r.bad)
		return false;
	q.recursion = flags & FLAG_RD;
	q.end = (size_t)(r.pos - message.data);
	*ret = q;
	return true;
}

void dns_answer(struct buf *out, struct bytes message, const struct dns_question *q,
		enum dns_rcode rcode, uint32_t address)
{
	writer_u16(out, q->id);
	writer_u16(out, (uint16_t)(FLAG_QR | FLAG_RA | (q->recursion ? FLAG_RD : 0) | rcode));
	writer_u16(out, 1);
	writer_u16(out, address ? 1 : 0);
	writer_u32(out, 0);
	buf_add(out, message.data + 12, q->end - 12);
	if (!address)
		return;
	writer_u16(out, NAME_ABOVE);
	writer_u16(out, DNS_TYPE_A);
	writer_u16(out, DNS_CLASS_IN);
	writer_u32(out, TTL_S);
	writer_u16(out, 4);
	writer_u32(out, address);
}

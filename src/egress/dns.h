/*
 * Questions and answers of DNS, as bytes. One question a message, like every
 * resolver asks; what is not that cannot be read.
 */
#pragma once

#include "lib/buf.h"
#include "proto/reader.h"

#define DNS_NAME_SIZE   254
#define DNS_MESSAGE_MAX 1232
#define DNS_TYPE_A      1
#define DNS_TYPE_AAAA   28
#define DNS_CLASS_IN    1

enum dns_rcode {
	DNS_OK = 0,
	DNS_FORMERR = 1,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5
};

struct dns_question {
	uint16_t id;
	bool recursion;
	char name[DNS_NAME_SIZE]; /* in small letters, without the last dot */
	bool strange;             /* bytes no host name has; they are '?' in `name` */
	uint16_t type, class;
	size_t end; /* of the question, in the message */
};

/* False: nothing that can be answered. */
must_check bool dns_read(struct bytes message, struct dns_question *ret);

/* The answer to that message: an address if `address` is not 0, in host order. */
void dns_answer(struct buf *out, struct bytes message, const struct dns_question *q,
		enum dns_rcode rcode, uint32_t address);

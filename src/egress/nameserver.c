#include "egress/nameserver.h"

#include <string.h>

#include "egress/dns.h"
#include "lib/time.h"

#define QUESTIONS_BURST 200
#define QUESTIONS_RATE  50 /* a second */
#define NAMES_BURST     100
#define NAMES_RATE      2 /* new ones a second: a name below a wildcard can carry data */

static enum dns_rcode refuse(struct egress *g, struct box *b, const struct dns_question *q,
			     const char *kind, const char *rule)
{
	egress_refuse(g, b, &(struct refusal){ kind, q->name, rule, 53 });
	return strcmp(kind, "name") == 0 ? DNS_NXDOMAIN : DNS_REFUSED;
}

static bool knows(const struct box *b, const char *name)
{
	for (size_t i = 0; i < BOX_NAMES_MAX; i++)
		if (b->names[i].name && strcmp(b->names[i].name, name) == 0)
			return true;
	return false;
}

static enum dns_rcode decide(struct egress *g, struct box *b, const struct dns_question *q,
			     uint32_t *address)
{
	uint64_t now = time_mono_ms();

	if (!tokens_take(&b->questions, QUESTIONS_BURST, QUESTIONS_RATE, now))
		return refuse(g, b, q, "dns_rate", "50 questions a second");
	if (strlen(q->name) > BOX_NAME_LEN_MAX)
		return refuse(g, b, q, "dns_length", "128 bytes");
	if (q->strange || !network_allows_name(&b->network, q->name))
		return refuse(g, b, q, "name",
			      b->network.mode == NETWORK_OPEN ? "only what is public" : "no rule");
	if (q->class != DNS_CLASS_IN || (q->type != DNS_TYPE_A && q->type != DNS_TYPE_AAAA))
		return q->type == 65 /* HTTPS: browsers ask, none is an answer */
			       ? DNS_OK
			       : refuse(g, b, q, "dns_type", "only A");
	if (q->type == DNS_TYPE_AAAA)
		return DNS_OK; /* it has none */
	if (!knows(b, q->name) && !tokens_take(&b->fresh_names, NAMES_BURST, NAMES_RATE, now))
		return refuse(g, b, q, "dns_rate", "2 new names a second");
	*address = box_name_address(b, q->name);
	return DNS_OK;
}

bool nameserver_answer(struct egress *g, struct box *b, struct bytes message, struct buf *out)
{
	struct dns_question q;
	uint32_t address = 0;
	enum dns_rcode rcode;

	if (!dns_read(message, &q))
		return false;
	rcode = decide(g, b, &q, &address);
	dns_answer(out, message, &q, rcode, address);
	return true;
}

#include "egress/box.h"

#include <stdlib.h>
#include <string.h>

#include "egress/leaf-cert.h"
#include "lib/str.h"

static struct box **address_bucket(const struct boxes *all, uint32_t address)
{
	uint32_t mixed = address * 2654435761U; /* neighbours spread */

	return (struct box **)&all->by_address[(mixed >> 16) % BOXES_BUCKETS];
}

static struct box **sandbox_bucket(const struct boxes *all, const char *sandbox)
{
	return (struct box **)&all->by_sandbox[str_hash(sandbox) % BOXES_BUCKETS];
}

struct box *boxes_at(const struct boxes *all, uint32_t address)
{
	struct box *b = *address_bucket(all, address);

	while (b && b->address != address)
		b = b->next_address;
	return b;
}

struct box *boxes_find(const struct boxes *all, const char *sandbox)
{
	struct box *b = *sandbox_bucket(all, sandbox);

	while (b && strcmp(b->sandbox, sandbox) != 0)
		b = b->next_sandbox;
	return b;
}

struct box *boxes_add(struct boxes *all, const char *sandbox, uint32_t address)
{
	struct box *b = xcalloc(1, sizeof(*b));
	struct box **at = address_bucket(all, address);

	(void)!str_copy(b->sandbox, sizeof(b->sandbox), sandbox); /* the same size: fits */
	b->address = address;
	b->next_address = *at;
	*at = b;
	at = sandbox_bucket(all, sandbox);
	b->next_sandbox = *at;
	*at = b;
	all->count++;
	return b;
}

void boxes_remove(struct boxes *all, struct box *b)
{
	struct box **at = address_bucket(all, b->address);

	while (*at != b)
		at = &(*at)->next_address;
	*at = b->next_address;
	at = sandbox_bucket(all, b->sandbox);
	while (*at != b)
		at = &(*at)->next_sandbox;
	*at = b->next_sandbox;
	all->count--;
	for (size_t i = 0; i < BOX_NAMES_MAX; i++)
		free(b->names[i].name);
	network_done(&b->network);
	if (b->secrets)
		explicit_bzero(b->secrets, b->secret_count * sizeof(*b->secrets));
	free(b->secrets);
	free(b->events);
	leaf_cert_free(b->authority);
	free(b);
}

uint32_t box_name_address(struct box *b, const char *name)
{
	size_t oldest = 0;

	for (size_t i = 0; i < BOX_NAMES_MAX; i++) {
		if (b->names[i].name && strcmp(b->names[i].name, name) == 0) {
			b->names[i].asked = ++b->asked;
			return BOX_NAMES_BASE + 1 + (uint32_t)i;
		}
		if (b->names[i].asked < b->names[oldest].asked)
			oldest = i;
	}
	free(b->names[oldest].name);
	b->names[oldest].name = xstrdup(name);
	b->names[oldest].asked = ++b->asked;
	return BOX_NAMES_BASE + 1 + (uint32_t)oldest;
}

const char *box_name_of(const struct box *b, uint32_t address)
{
	uint32_t i = address - (BOX_NAMES_BASE + 1);

	return i < BOX_NAMES_MAX ? b->names[i].name : NULL;
}

bool box_address_is_name(uint32_t address)
{
	return (address ^ BOX_NAMES_BASE) >> (32 - BOX_NAMES_BITS) == 0;
}

bool tokens_take(struct tokens *t, uint32_t burst, uint32_t per_second, uint64_t now_ms)
{
	uint64_t have = t->at_ms ? t->thousandths + (now_ms - t->at_ms) * per_second
				 : burst * 1000ULL;

	if (have > burst * 1000ULL)
		have = burst * 1000ULL;
	t->at_ms = now_ms;
	t->thousandths = (uint32_t)have;
	if (have < 1000)
		return false;
	t->thousandths -= 1000;
	return true;
}

const struct egress_secret *box_secret(const struct box *b, const char *host, size_t *i)
{
	while (*i < b->secret_count) {
		const struct egress_secret *s = &b->secrets[(*i)++];

		if (network_host_matches(s->host, host))
			return s;
	}
	return NULL;
}

void box_refused(struct box *b, const struct refusal *r, uint64_t wall_ms)
{
	struct egress_event *ev;

	for (size_t i = 0; i < b->event_count; i++) {
		ev = &b->events[i];
		if (ev->port == r->port && strcmp(ev->kind, r->kind) == 0 &&
		    strcmp(ev->name, r->name) == 0) {
			ev->count++;
			return;
		}
	}
	if (b->event_count == BOX_EVENTS_MAX) {
		b->events_lost++;
		return;
	}
	if (!b->events)
		b->events = xcalloc(BOX_EVENTS_MAX, sizeof(*b->events));
	ev = &b->events[b->event_count++];
	*ev = (struct egress_event){ .generation = b->generation,
				     .at_ms = wall_ms,
				     .port = r->port,
				     .count = 1 };
	(void)!str_copy(ev->sandbox, sizeof(ev->sandbox), b->sandbox);
	(void)!str_copy(ev->kind, sizeof(ev->kind), r->kind);
	(void)!str_copy_bytes(ev->name, sizeof(ev->name), r->name,
			      strnlen(r->name, sizeof(ev->name) - 1));
	(void)!str_copy_bytes(ev->rule, sizeof(ev->rule), r->rule,
			      strnlen(r->rule, sizeof(ev->rule) - 1));
}

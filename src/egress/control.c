#include "egress/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "egress/conn.h"
#include "egress/leaf-cert.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/str.h"
#include "lib/time.h"

#define BACKLOG        16
#define TELL_MS        200
#define QUEUE_MAX      (8UL * 1024 * 1024)

/* Of one box: its last thousand are kept, and the box must not be able to wash them away. */
#define TELLINGS_BURST 100
#define TELLINGS_RATE  4 /* a second */

/* A link, and the policy that is on its way over it. */
struct control {
	struct egress *egress;
	int fd;
	uv_poll_t poll;
	struct packets out;
	bool expecting; /* rules or secrets of `policy` */
	struct egress_policy policy;
	struct network network;
	struct egress_secret *secrets;
	size_t secret_count;
	struct err refused; /* ERR_NONE: nothing is wrong with it so far */
	struct control *next;
};

static void forget_policy(struct control *c)
{
	network_done(&c->network);
	if (c->secrets)
		explicit_bzero(c->secrets, c->secret_count * sizeof(*c->secrets));
	free(take_ptr(c->secrets));
	c->secret_count = 0;
	c->expecting = false;
	c->refused = (struct err){ 0 };
}

static void on_control_closed(uv_handle_t *handle)
{
	struct control *c = handle->data;

	close(c->fd);
	forget_policy(c);
	free(c);
}

static void hang_up(struct control *c)
{
	struct control **at = &c->egress->controls;

	if (uv_is_closing((uv_handle_t *)&c->poll))
		return;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	packets_done(&c->out);
	uv_poll_stop(&c->poll);
	uv_close((uv_handle_t *)&c->poll, on_control_closed);
}

static void on_event(uv_poll_t *poll, int status, int events);

static void flush(struct control *c)
{
	if (packets_flush(&c->out, c->fd) < 0)
		return hang_up(c);
	uv_poll_start(&c->poll, UV_READABLE | (c->out.first ? UV_WRITABLE : 0), on_event);
}

static void tell(struct control *c, enum egress_kind kind, const void *record)
{
	struct buf data = buf_make(EGRESS_PACKET_MAX);

	if (uv_is_closing((uv_handle_t *)&c->poll))
		return;
	egress_encode(&data, kind, record);
	packets_add(&c->out, &data, -1);
	if (c->out.bytes > QUEUE_MAX)
		return hang_up(c);
	flush(c);
}

static void confirm(struct control *c, const char *sandbox, const struct box *b,
		    const struct err *why)
{
	struct egress_confirm ok = { .generation = b ? b->generation : 0,
				     .version = b ? b->version : 0 };

	(void)!str_copy(ok.sandbox, sizeof(ok.sandbox), sandbox);
	if (why && why->code != ERR_NONE)
		snprintf(ok.why, sizeof(ok.why), "%.199s", why->msg);
	tell(c, EGRESS_CONFIRM, &ok);
}

/* ---- policies ---- */

/* Events and counts of a box belong to it: told before it is forgotten. */
static void tell_box(struct egress *g, struct box *b, bool all);

static void remove_box(struct egress *g, struct box *b)
{
	conns_review(b, true);
	tell_box(g, b, true);
	boxes_remove(&g->boxes, b);
}

/* What is known from before: what was counted here since then is not to be told from it. */
static void count_from(struct box *b, const struct egress_policy *p)
{
	uint64_t *const here[] = { &b->use.connections, &b->use.requests, &b->use.bytes_out,
				   &b->use.bytes_in };
	const uint64_t before[] = { p->connections, p->requests, p->bytes_out, p->bytes_in };
	bool known = b->since_ns > 0;

	for (size_t i = 0; i < array_len(here); i++)
		if (before[i] > *here[i]) {
			*here[i] = before[i];
			known = false;
		}
	if (!known)
		b->since_ns = uv_hrtime();
}

/* The box of this policy, at its address; a box that was there before has left. */
static struct box *box_for(struct egress *g, const struct egress_policy *p)
{
	struct box *b = boxes_find(&g->boxes, p->sandbox), *other;

	if (b && (b->address != p->address || b->generation != p->generation)) {
		remove_box(g, b);
		b = NULL;
	}
	other = boxes_at(&g->boxes, p->address);
	if (other && other != b)
		remove_box(g, other);
	return b ? b : boxes_add(&g->boxes, p->sandbox, p->address);
}

/* All of it has come: it takes effect at once, or the box is closed. */
static void apply(struct control *c)
{
	struct egress *g = c->egress;
	const struct egress_policy *p = &c->policy;
	struct box *b = boxes_find(&g->boxes, p->sandbox);
	bool refused = c->refused.code != ERR_NONE;

	if (b && (p->generation < b->generation ||
		  (p->generation == b->generation && p->version < b->version))) {
		confirm(c, p->sandbox, b, NULL);
		return forget_policy(c);
	}
	b = box_for(g, p);
	b->generation = p->generation;
	b->version = refused ? 0 : p->version;
	network_done(&b->network);
	if (b->secrets)
		explicit_bzero(b->secrets, b->secret_count * sizeof(*b->secrets));
	free(take_ptr(b->secrets));
	b->secret_count = 0;
	if (!refused) {
		b->network = c->network;
		c->network = (struct network){ 0 };
		b->secret_count = c->secret_count;
		b->secrets = take_ptr(c->secrets);
		c->secret_count = 0;
	}
	if (strcmp(b->ca_seed, p->ca_seed) != 0)
		leaf_cert_free(take_ptr(b->authority));
	memcpy(b->ca_seed, p->ca_seed, sizeof(b->ca_seed));
	count_from(b, p);
	conns_review(b, false);
	confirm(c, p->sandbox, b, &c->refused);
	forget_policy(c);
}

static void apply_if_whole(struct control *c)
{
	c->expecting = c->policy.rules > 0 || c->policy.secrets > 0;
	if (!c->expecting)
		apply(c);
}

static void take_policy(struct control *c, const struct egress_policy *p)
{
	forget_policy(c);
	c->policy = *p;
	c->network = (struct network){ .locked = p->locked != 0,
				       .max_connections = p->max_connections,
				       .max_requests = p->max_requests,
				       .max_bytes_out = p->max_bytes_out };
	if (p->mode < NETWORK_MODE_COUNT)
		c->network.mode = (enum network_mode)p->mode;
	else
		err_set(&c->refused, ERR_INVALID, "mode %u is not known", p->mode);
	apply_if_whole(c);
}

static int read_ports(const char *text, struct network_rule *r, struct err *e)
{
	char word[8];
	uint64_t port;

	for (const char *at = text; *at; at += strspn(at, " ")) {
		size_t len = strcspn(at, " ");

		if (!str_copy_bytes(word, sizeof(word), at, len) || str_u64(word, &port, e) < 0 ||
		    port > UINT16_MAX || r->port_count == NETWORK_PORTS_MAX)
			return err_set(e, ERR_INVALID, "ports of %.80s", r->host);
		r->ports[r->port_count++] = (uint16_t)port;
		at += len;
	}
	return 0;
}

/* What is wrong is remembered: the rest of the policy still comes. */
static void take_rule(struct control *c, const struct egress_rule *wire)
{
	struct network_rule r = { .bootstrap = wire->bootstrap != 0 };

	_Static_assert(sizeof(r.host) == sizeof(wire->host) &&
			       sizeof(r.methods) == sizeof(wire->methods) &&
			       sizeof(r.paths) == sizeof(wire->paths),
		       "a rule is the same on the wire");
	memcpy(r.host, wire->host, sizeof(r.host));
	memcpy(r.methods, wire->methods, sizeof(r.methods));
	memcpy(r.paths, wire->paths, sizeof(r.paths));
	c->policy.rules--;
	if (read_ports(wire->ports, &r, &c->refused) == 0)
		(void)!network_add(&c->network, &r, &c->refused);
	apply_if_whole(c);
}

static int check_secret(const struct egress_secret *s, size_t count, struct err *e)
{
	if (count == NETWORK_SECRETS_MAX)
		return err_set(e, ERR_INVALID, "more than %d secrets", NETWORK_SECRETS_MAX);
	if (!s->header[0] || strpbrk(s->header, "\r\n: ") || !s->value[0] ||
	    strpbrk(s->value, "\r\n"))
		return err_set(e, ERR_INVALID, "secret %s cannot stand in a header", s->name);
	if (network_host_check(s->host, e) < 0 || network_methods_check(s->methods, e) < 0)
		return -1;
	return network_paths_check(s->paths, e);
}

static void take_secret(struct control *c, const struct egress_secret *s)
{
	c->policy.secrets--;
	if (check_secret(s, c->secret_count, &c->refused) == 0) {
		if (!c->secrets)
			c->secrets = xcalloc(NETWORK_SECRETS_MAX, sizeof(*c->secrets));
		c->secrets[c->secret_count++] = *s;
	}
	apply_if_whole(c);
}

static void take_drop(struct control *c, const struct egress_drop *d)
{
	struct box *b = boxes_find(&c->egress->boxes, d->sandbox);

	if (b && b->generation <= d->generation)
		remove_box(c->egress, take_ptr(b));
	confirm(c, d->sandbox, b, NULL);
}

static void take_ask(struct control *c, const struct egress_ask *a)
{
	const struct box *b = boxes_find(&c->egress->boxes, a->sandbox);
	struct egress_answer answer = { .number = a->number };

	if (b && b->generation == a->generation) {
		answer.since_ns = b->since_ns;
		answer.requests = b->use.requests;
	}
	tell(c, EGRESS_ANSWER, &answer);
}

static int take_packet(struct control *c, struct bytes packet, struct err *e)
{
	union egress_any any = { 0 };
	enum egress_kind kind;

	if (egress_decode(packet, &kind, &any, e) < 0)
		return -1;
	if (kind == EGRESS_POLICY)
		take_policy(c, &any.policy);
	else if (kind == EGRESS_RULE && c->expecting && c->policy.rules > 0)
		take_rule(c, &any.rule);
	else if (kind == EGRESS_SECRET && c->expecting && c->policy.secrets > 0)
		take_secret(c, &any.secret);
	else if (kind == EGRESS_DROP)
		take_drop(c, &any.drop);
	else if (kind == EGRESS_ASK)
		take_ask(c, &any.ask);
	else
		return err_set(e, ERR_INVALID, "a record of kind %d is not awaited", (int)kind);
	explicit_bzero(&any, sizeof(any));
	return 0;
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct control *c = poll->data;
	uint8_t data[EGRESS_PACKET_MAX];
	struct err e;
	ssize_t n;
	int fd;

	if (status < 0)
		return hang_up(c);
	if (events & UV_READABLE) {
		n = packet_receive(c->fd, data, sizeof(data), &fd);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			return hang_up(c);
		close_fd(&fd); /* none is wanted here */
		if (take_packet(c, (struct bytes){ data, (size_t)n }, &e) < 0) {
			log_event(LOG_ERROR, "berthd sent what cannot be read", "why", e.msg, NULL);
			return hang_up(c);
		}
	}
	if ((events & UV_WRITABLE) && !uv_is_closing((uv_handle_t *)poll))
		flush(c);
}

/* ---- events and counts, to every link that listens ---- */

static void tell_all(struct egress *g, enum egress_kind kind, const void *record)
{
	struct control *next;

	for (struct control *c = g->controls; c; c = next) {
		next = c->next;
		tell(c, kind, record);
	}
}

static void tell_events(struct egress *g, struct box *b, bool all)
{
	size_t told = 0;

	if (b->event_count == 0)
		return;
	b->events[b->event_count - 1].count += b->events_lost; /* not all are told apart */
	b->events_lost = 0;
	while (told < b->event_count &&
	       (all || tokens_take(&b->tellings, TELLINGS_BURST, TELLINGS_RATE, time_mono_ms())))
		tell_all(g, EGRESS_EVENT, &b->events[told++]);
	b->event_count -= told;
	memmove(b->events, b->events + told, b->event_count * sizeof(*b->events));
	if (b->event_count == 0)
		free(take_ptr(b->events));
}

static void tell_box(struct egress *g, struct box *b, bool all)
{
	struct egress_counts counts = { .generation = b->generation,
					.connections = b->use.connections,
					.requests = b->use.requests,
					.bytes_out = b->use.bytes_out,
					.bytes_in = b->use.bytes_in };

	tell_events(g, b, all);
	if (memcmp(&b->use, &b->told, sizeof(b->use)) == 0)
		return;
	(void)!str_copy(counts.sandbox, sizeof(counts.sandbox), b->sandbox);
	tell_all(g, EGRESS_COUNTS, &counts);
	b->told = b->use;
}

static void on_tell(uv_timer_t *timer)
{
	struct egress *g = timer->data;

	if (!g->controls)
		return; /* they wait, as many as are kept */
	for (size_t i = 0; i < BOXES_BUCKETS; i++)
		for (struct box *b = g->boxes.by_address[i]; b; b = b->next_address)
			tell_box(g, b, false);
}

/* ---- the socket ---- */

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct egress *g = poll->data;
	cleanup(close_fd) int fd = accept4(g->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct ucred peer;
	socklen_t len = sizeof(peer);
	struct control *c;

	(void)status, (void)events;
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 ||
	    (peer.uid != 0 && peer.uid != g->peer_uid)) {
		log_event(LOG_WARN, "berth-egress refused a connection of another user", NULL);
		return;
	}
	c = xcalloc(1, sizeof(*c));
	c->egress = g;
	c->fd = take_fd(fd);
	packets_init(&c->out);
	c->next = g->controls;
	g->controls = c;
	uv_poll_init(&g->loop, &c->poll, c->fd);
	c->poll.data = c;
	uv_poll_start(&c->poll, UV_READABLE, on_event);
	tell(c, EGRESS_COUNTS, &(struct egress_counts){ 0 }); /* that we can be asked */
}

int control_open(struct egress *g, struct err *e)
{
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	cleanup(close_fd) int fd = socket(AF_UNIX, type, 0); /* CLOEXEC */
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	if (fd < 0)
		return err_sys(e, errno, "socket");
	if (!str_copy(at.sun_path, sizeof(at.sun_path), g->settings.socket))
		return err_set(e, ERR_INVALID, "socket path too long: %s", g->settings.socket);
	(void)unlink(at.sun_path); /* of an earlier one */
	/* Its directory lets berthd through and keeps others out; SO_PEERCRED decides. */
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, BACKLOG) < 0 ||
	    chmod(at.sun_path, 0666) < 0)
		return err_sys(e, errno, "listen on %s", at.sun_path);
	g->listen_fd = take_fd(fd);
	uv_poll_init(&g->loop, &g->listen_poll, g->listen_fd);
	g->listen_poll.data = g;
	uv_poll_start(&g->listen_poll, UV_READABLE, on_connection);
	uv_timer_init(&g->loop, &g->tell);
	g->tell.data = g;
	uv_timer_start(&g->tell, on_tell, TELL_MS, TELL_MS);
	return 0;
}

void control_close(struct egress *g)
{
	while (g->controls)
		hang_up(g->controls);
	uv_close((uv_handle_t *)&g->listen_poll, NULL);
	uv_close((uv_handle_t *)&g->tell, NULL);
	close_fd(&g->listen_fd);
	(void)unlink(g->settings.socket);
}

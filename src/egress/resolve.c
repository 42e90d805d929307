#include "egress/resolve.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "core/network.h"
#include "lib/str.h"
#include "lib/time.h"

#define TICK_MS    200
#define TIMEOUT_MS 3000
#define TRIES      2

struct lookup {
	struct resolver *resolver;
	char name[NETWORK_HOST_SIZE];
	uint32_t owner;
	bool ended;
	uint64_t ended_ms;
	struct resolved result;
	struct resolve_ask *asks;
	struct lookup *next, *next_known;
	bool is_known; /* to be told */
};

/* A socket of c-ares. */
struct watch {
	uv_poll_t poll;
	struct resolver *resolver;
	ares_socket_t fd;
	struct watch *next;
};

static void on_watch_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_socket_event(uv_poll_t *poll, int status, int events)
{
	struct watch *w = poll->data;

	if (status < 0)
		events = UV_READABLE | UV_WRITABLE; /* c-ares sees the error itself */
	ares_process_fd(w->resolver->channel, events & UV_READABLE ? w->fd : ARES_SOCKET_BAD,
			events & UV_WRITABLE ? w->fd : ARES_SOCKET_BAD);
}

/* c-ares says what it waits for; nothing any more means that it closes the socket. */
static void on_socket_state(void *data, ares_socket_t fd, int readable, int writable)
{
	struct resolver *r = data;
	struct watch **at = &r->watches;
	struct watch *w;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	w = *at;
	if (!readable && !writable) {
		if (!w)
			return;
		*at = w->next;
		uv_poll_stop(&w->poll);
		uv_close((uv_handle_t *)&w->poll, on_watch_closed);
		return;
	}
	if (!w) {
		w = xcalloc(1, sizeof(*w));
		w->resolver = r;
		w->fd = fd;
		w->next = r->watches;
		r->watches = w;
		uv_poll_init(r->loop, &w->poll, fd);
		w->poll.data = w;
	}
	uv_poll_start(&w->poll, (readable ? UV_READABLE : 0) | (writable ? UV_WRITABLE : 0),
		      on_socket_event);
}

static void on_soon(uv_timer_t *timer)
{
	struct resolver *r = timer->data;
	struct resolve_ask *ask;
	struct lookup *l;

	while ((l = r->known)) {
		r->known = l->next_known;
		l->is_known = false;
		while ((ask = l->asks)) {
			resolve_cancel(ask); /* off the list */
			ask->done(ask, &l->result);
		}
	}
}

/* Told from the loop: c-ares may be calling from within our own call. */
static void tell_soon(struct lookup *l)
{
	struct resolver *r = l->resolver;

	if (l->is_known)
		return;
	l->is_known = true;
	l->next_known = r->known;
	r->known = l;
	if (!uv_is_closing((uv_handle_t *)&r->soon))
		uv_timer_start(&r->soon, on_soon, 0, 0);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
	struct lookup *l = arg;

	(void)timeouts;
	for (struct ares_addrinfo_node *n = status == ARES_SUCCESS ? found->nodes : NULL;
	     n && l->result.count < RESOLVE_ADDRESSES_MAX; n = n->ai_next)
		if (n->ai_family == AF_INET)
			l->result.addresses[l->result.count++] =
				ntohl(((struct sockaddr_in *)(void *)n->ai_addr)->sin_addr.s_addr);
	if (found)
		ares_freeaddrinfo(found);
	l->ended = true;
	l->ended_ms = time_mono_ms();
	tell_soon(l);
}

static void forget_old(struct resolver *r, uint64_t now)
{
	for (size_t i = 0; i < RESOLVE_BUCKETS; i++)
		for (struct lookup **at = &r->buckets[i]; *at;) {
			struct lookup *l = *at;

			if (!l->ended || l->is_known || now - l->ended_ms < RESOLVE_KEEP_MS) {
				at = &l->next;
				continue;
			}
			*at = l->next;
			r->held[l->owner % RESOLVE_OWNERS]--;
			r->count--;
			free(l);
		}
}

static void on_tick(uv_timer_t *timer)
{
	struct resolver *r = timer->data;

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	forget_old(r, time_mono_ms());
	if (r->count == 0)
		uv_timer_stop(timer);
}

int resolver_open(struct resolver *r, uv_loop_t *loop, const char *servers, struct err *e)
{
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = r,
	};
	int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB;
	int rc = ares_library_init(ARES_LIB_INIT_ALL);

	r->loop = loop;
	if (rc == ARES_SUCCESS)
		rc = ares_init_options(&r->channel, &o, mask);
	if (rc == ARES_SUCCESS && servers[0])
		rc = ares_set_servers_ports_csv(r->channel, servers);
	if (rc != ARES_SUCCESS)
		return err_set(e, ERR_INVALID, "resolver %.80s: %s", servers, ares_strerror(rc));
	uv_timer_init(loop, &r->tick);
	uv_timer_init(loop, &r->soon);
	r->tick.data = r->soon.data = r;
	return 0;
}

void resolver_close(struct resolver *r)
{
	uv_close((uv_handle_t *)&r->tick, NULL);
	uv_close((uv_handle_t *)&r->soon, NULL);
	ares_destroy(r->channel);
	for (size_t i = 0; i < RESOLVE_BUCKETS; i++)
		while (r->buckets[i]) {
			struct lookup *l = r->buckets[i];

			r->buckets[i] = l->next;
			free(l);
		}
}

/*
 * The fewer are left, the fewer it may have, so that however many take what they can get, the
 * next one still finds some.
 */
static bool has_room(const struct resolver *r, uint32_t owner)
{
	size_t share = (RESOLVE_LOOKUPS_MAX - r->count) / RESOLVE_OWNER_SHARE;

	return r->held[owner % RESOLVE_OWNERS] <
	       (share < RESOLVE_OWNER_MAX ? share : RESOLVE_OWNER_MAX);
}

static struct lookup *begin(struct resolver *r, uint32_t owner, struct lookup **bucket,
			    const char *name)
{
	static const struct ares_addrinfo_hints hints = { .ai_family = AF_INET };
	struct lookup *l = xcalloc(1, sizeof(*l));

	l->resolver = r;
	l->owner = owner;
	r->held[owner % RESOLVE_OWNERS]++;
	(void)!str_copy(l->name, sizeof(l->name), name); /* a checked name fits */
	l->next = *bucket;
	*bucket = l;
	r->count++;
	uv_timer_start(&r->tick, on_tick, TICK_MS, TICK_MS);
	ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, l);
	return l;
}

int resolve(struct resolver *r, uint32_t owner, const char *name, struct resolve_ask *ask,
	    struct err *e)
{
	struct lookup **bucket = &r->buckets[str_hash(name) % RESOLVE_BUCKETS];
	struct lookup *l = *bucket;

	while (l && strcmp(l->name, name) != 0)
		l = l->next;
	if (!l && !has_room(r, owner))
		return err_set(e, ERR_BUSY, "%u names of this sandbox are being asked for",
			       r->held[owner % RESOLVE_OWNERS]);
	if (!l)
		l = begin(r, owner, bucket, name);
	ask->next = l->asks;
	ask->at = &l->asks;
	if (ask->next)
		ask->next->at = &ask->next;
	l->asks = ask;
	ask->waits = true;
	if (l->ended)
		tell_soon(l);
	return 0;
}

void resolve_cancel(struct resolve_ask *ask)
{
	if (!ask->waits)
		return;
	*ask->at = ask->next;
	if (ask->next)
		ask->next->at = ask->at;
	ask->waits = false;
}

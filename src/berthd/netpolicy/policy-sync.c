#include "berthd/netpolicy/policy-sync.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "berthd/netpolicy/policy-encode.h"
#include "berthd/netpolicy/questions.h"
#include "berthd/netpolicy/refusals.h"
#include "berthd/runtime/berthd.h"
#include "lib/log.h"
#include "lib/packet.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define BUCKETS    4096
#define TICK_MS    100
#define CONFIRM_MS 3000
#define LOOK_MS    5000
#define SAVE_MS    1000
#define SAVE_MAX   500
#define READ_MAX   100
#define FORGET_MS  60000 /* after it was dropped: by then berth-egress has told its last */

struct entry {
	char sandbox[SANDBOX_ID_SIZE];
	uint64_t generation;
	struct egress_status s;
	uint64_t closed; /* the version in whose place nothing is allowed: it cannot be */
	bool open;       /* it may allow something: else there is nothing to be counted */
	bool used;       /* since it was last written */
	uint64_t dropped_ms;
	struct entry *next;
};

/* One policy on its way: read on a worker, sent from the first reactor, confirmed. */
struct telling {
	struct job job; /* back to `from` */
	char sandbox[SANDBOX_ID_SIZE];
	uint64_t generation;
	uint32_t address;
	struct wire wire;
	uint64_t deadline_ms;
	struct reactor *from; /* NULL: no caller waits */
	egress_told_fn *done;
	void *data;
	struct telling *next;
};

/* Those that are read at once. */
struct reading {
	struct job job;
	struct policy_sync *keeper;
	struct telling *items[READ_MAX];
	size_t count;
};

struct policy_sync {
	struct reactor *reactor;
	pthread_mutex_t lock; /* the entries, `fd`, `look` and `answers` */
	struct entry *entries[BUCKETS];
	bool look, listed;
	bool answers; /* it can be asked; see proto/egress.h */

	/* the rest is the first reactor's */
	int fd;
	uv_poll_t *poll;
	struct packets out;
	uv_timer_t tick;
	struct telling *waiting;
	struct questions questions;
	bool listing, looking, saving;
	uint64_t looked_ms, saved_ms;
	char last[SANDBOX_ID_SIZE]; /* how far the look came */
	struct reading *next;       /* gathers what is to be read anew; NULL: nothing yet */
	struct refusals *refusals;
};

static struct entry *find(struct policy_sync *k, const char *sandbox)
{
	struct entry *x = k->entries[str_hash(sandbox) % BUCKETS];

	while (x && strcmp(x->sandbox, sandbox) != 0)
		x = x->next;
	return x;
}

static bool reached(const struct policy_sync *k)
{
	return k->fd >= 0;
}

/* ---- told ---- */

static void on_back(struct job *job)
{
	struct telling *t = container_of(job, struct telling, job);

	t->done(t->data);
	free(t);
}

static void finish(struct telling *t)
{
	wire_done(&t->wire);
	if (!t->from) {
		free(t);
		return;
	}
	t->job = (struct job){ .reactor = t->from, .done = on_back };
	reactor_post(t->from, &t->job);
}

/* `read`: the policy was, so what it lets through is known. */
static void set_why(struct policy_sync *k, const struct telling *t, bool read, const char *why)
{
	struct entry *x;

	pthread_mutex_lock(&k->lock);
	x = find(k, t->sandbox);
	if (x && x->generation == t->generation) {
		snprintf(x->s.why, sizeof(x->s.why), "%s", why);
		x->closed = t->wire.why[0] ? t->wire.version : 0;
		x->open = read ? t->wire.open : x->open;
	}
	pthread_mutex_unlock(&k->lock);
}

static void flush(struct policy_sync *k);

/* What was read goes out, and is waited for. */
static void tell(struct policy_sync *k, struct telling *t, const struct job *job)
{
	set_why(k, t, !job->failed, job->failed ? job->e.msg : t->wire.why);
	if (job->failed || !reached(k))
		return finish(t);
	for (size_t i = 0; i < t->wire.count; i++)
		packets_add(&k->out, &t->wire.packets[i], -1);
	t->wire.count = 0;
	t->deadline_ms = time_mono_ms() + CONFIRM_MS;
	t->next = k->waiting;
	k->waiting = t;
}

/* Back on the first reactor. */
static void on_read(struct job *job)
{
	cleanup(free_ptr) struct reading *r = container_of(job, struct reading, job);

	for (size_t i = 0; i < r->count; i++)
		tell(r->keeper, r->items[i], job);
	flush(r->keeper);
}

static int read_rows(struct job *job, struct store *s, struct err *e)
{
	struct reading *r = container_of(job, struct reading, job);
	cleanup(free_ptr) struct wire_order *orders = xcalloc(r->count, sizeof(*orders));

	for (size_t i = 0; i < r->count; i++) {
		struct telling *t = r->items[i];

		orders[i].of.generation = t->generation;
		orders[i].of.address = t->address;
		orders[i].ret = &t->wire;
		(void)!str_copy(orders[i].of.sandbox, sizeof(orders[i].of.sandbox),
				t->sandbox); /* it fits */
	}
	return wires_make(job->reactor->berthd, s, orders, r->count, e);
}

static void read_now(struct reading *r, bool background)
{
	r->job = (struct job){
		.reactor = r->keeper->reactor,
		.run = read_rows,
		.done = on_read,
		.background = background, /* thousands of sandboxes, when berth-egress is back */
	};
	worker_submit(&r->keeper->reactor->berthd->workers, &r->job);
}

static struct reading *reading_new(struct policy_sync *k)
{
	struct reading *r = xcalloc(1, sizeof(*r));

	r->keeper = k;
	return r;
}

/* Without an address if it runs nowhere. */
static struct telling *telling_new(struct policy_sync *k, const char *sandbox)
{
	struct telling *t = xcalloc(1, sizeof(*t));
	struct entry *x;

	(void)!str_copy(t->sandbox, sizeof(t->sandbox), sandbox);
	pthread_mutex_lock(&k->lock);
	x = find(k, sandbox);
	if (x) {
		t->generation = x->generation;
		t->address = x->s.address;
	}
	pthread_mutex_unlock(&k->lock);
	return t;
}

void egress_tell(struct policy_sync *k, const char *sandbox, struct reactor *from,
		 egress_told_fn *done, void *data)
{
	struct telling *t = telling_new(k, sandbox);
	struct reading *r;

	t->from = from;
	t->done = done;
	t->data = data;
	if (!t->address)
		return finish(t); /* it runs nowhere: told when it does */
	r = reading_new(k);
	r->items[r->count++] = t;
	read_now(r, false);
}

/* Many of them, on the first reactor, and no caller waits: read together with the next ones. */
static void tell_gathered(struct policy_sync *k)
{
	if (k->next)
		read_now(take_ptr(k->next), true);
}

static void tell_among_many(struct policy_sync *k, const char *sandbox)
{
	struct telling *t = telling_new(k, sandbox);

	if (!t->address)
		return finish(t);
	if (!k->next)
		k->next = reading_new(k);
	k->next->items[k->next->count++] = t;
	if (k->next->count == READ_MAX)
		tell_gathered(k);
}

/* ---- where sandboxes are ---- */

void egress_put(struct policy_sync *k, const char *sandbox, uint64_t generation,
		uint32_t address, bool cut)
{
	struct entry **bucket = &k->entries[str_hash(sandbox) % BUCKETS];
	struct entry *x;

	pthread_mutex_lock(&k->lock);
	x = find(k, sandbox);
	if (!x) {
		x = xcalloc(1, sizeof(*x));
		(void)!str_copy(x->sandbox, sizeof(x->sandbox), sandbox);
		x->next = *bucket;
		*bucket = x;
	}
	if (x->generation != generation || x->s.address != address)
		x->s.in_force = 0;
	x->generation = generation;
	x->s.address = address;
	x->s.cut = cut;
	pthread_mutex_unlock(&k->lock);
}

struct dropping {
	struct job job;
	struct policy_sync *keeper;
	struct egress_drop record;
};

static void on_drop(struct job *job)
{
	cleanup(free_ptr) struct dropping *d = container_of(job, struct dropping, job);
	struct buf packet = buf_make(EGRESS_PACKET_MAX);

	if (!reached(d->keeper)) /* it is told all anew when it is back */
		return;
	egress_encode(&packet, EGRESS_DROP, &d->record);
	packets_add(&d->keeper->out, &packet, -1);
	flush(d->keeper);
}

void egress_drop(struct policy_sync *k, const char *sandbox, uint64_t generation)
{
	struct dropping *d;
	struct entry *x;
	bool known;

	pthread_mutex_lock(&k->lock);
	x = find(k, sandbox);
	known = x && x->s.address && x->generation <= generation;
	if (known) {
		x->s.address = 0;
		x->s.in_force = 0;
		x->dropped_ms = time_mono_ms();
	}
	pthread_mutex_unlock(&k->lock);
	if (!known)
		return;
	d = xcalloc(1, sizeof(*d));
	d->keeper = k;
	d->record.generation = generation;
	(void)!str_copy(d->record.sandbox, sizeof(d->record.sandbox), sandbox);
	d->job = (struct job){ .reactor = k->reactor, .done = on_drop };
	reactor_post(k->reactor, &d->job);
}

void egress_status(struct policy_sync *k, const char *sandbox, struct egress_status *ret)
{
	struct entry *x;

	*ret = (struct egress_status){ 0 };
	pthread_mutex_lock(&k->lock);
	x = find(k, sandbox);
	if (x)
		*ret = x->s;
	if (ret->cut)
		ret->in_force = 0;
	ret->reached = reached(k);
	pthread_mutex_unlock(&k->lock);
}

/* ---- what it has used by now ---- */

static void send_question(struct question *one)
{
	struct policy_sync *k = one->sync;
	struct buf packet = buf_make(EGRESS_PACKET_MAX);

	if (!reached(k) || k->questions.silent)
		return question_back(one);
	questions_add(&k->questions, one, time_mono_ms(), &packet);
	packets_add(&k->out, &packet, -1);
	flush(k);
}

static void on_question(struct job *job)
{
	send_question(container_of(job, struct question, job));
}

bool egress_ask(struct policy_sync *k, struct egress_ask *ask, struct reactor *from,
		egress_count_fn *done, void *data)
{
	struct question *one;
	struct entry *x;
	bool known;

	pthread_mutex_lock(&k->lock);
	x = find(k, ask->sandbox);
	if (x && !ask->generation)
		ask->generation = x->generation;
	known = reached(k) && k->answers && x && x->generation == ask->generation &&
		x->open && x->s.in_force && !x->s.cut;
	pthread_mutex_unlock(&k->lock);
	if (!known)
		return false;
	one = xcalloc(1, sizeof(*one));
	one->sync = k;
	one->from = from;
	one->done = done;
	one->data = data;
	one->ask = *ask;
	if (from == k->reactor) { /* it goes out at once */
		send_question(one);
		return true;
	}
	one->job = (struct job){ .reactor = k->reactor, .done = on_question };
	reactor_post(k->reactor, &one->job);
	return true;
}

void egress_look(struct policy_sync *k)
{
	pthread_mutex_lock(&k->lock);
	k->look = true;
	pthread_mutex_unlock(&k->lock);
}

/* ---- what berth-egress says ---- */

static void take_confirm(struct policy_sync *k, const struct egress_confirm *c)
{
	struct telling *t;
	struct entry *x;

	pthread_mutex_lock(&k->lock);
	x = find(k, c->sandbox);
	if (x && x->generation == c->generation) {
		x->s.in_force = c->version == x->closed ? 0 : c->version;
		if (c->why[0])
			memcpy(x->s.why, c->why, sizeof(x->s.why));
	}
	pthread_mutex_unlock(&k->lock);
	for (struct telling **at = &k->waiting; (t = *at);) {
		if (strcmp(t->sandbox, c->sandbox) != 0 || t->generation != c->generation ||
		    (c->version != 0 && t->wire.version > c->version)) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		finish(t);
	}
}

static void take_counts(struct policy_sync *k, const struct egress_counts *c)
{
	struct entry *x;

	pthread_mutex_lock(&k->lock);
	k->answers = k->answers || !c->sandbox[0];
	x = find(k, c->sandbox);
	if (x && x->generation == c->generation) {
		x->s.use = (struct network_use){ c->connections, c->requests, c->bytes_out,
						 c->bytes_in };
		x->used = true;
	}
	pthread_mutex_unlock(&k->lock);
}

static int take_packet(struct policy_sync *k, struct bytes packet, struct err *e)
{
	union egress_any any = { 0 };
	enum egress_kind kind;

	if (egress_decode(packet, &kind, &any, e) < 0)
		return -1;
	if (kind == EGRESS_CONFIRM)
		take_confirm(k, &any.confirm);
	else if (kind == EGRESS_COUNTS)
		take_counts(k, &any.counts);
	else if (kind == EGRESS_ANSWER)
		questions_take(&k->questions, &any.answer);
	else if (kind == EGRESS_EVENT)
		refusals_take(k->refusals, &any.event);
	else
		return err_set(e, ERR_INVALID, "a record of kind %d is not awaited", (int)kind);
	return 0;
}

/* ---- the link ---- */

static void on_poll_closed(uv_handle_t *handle)
{
	free(handle);
}

static void lose(struct policy_sync *k, const char *why)
{
	struct telling *t;

	if (!reached(k))
		return;
	uv_poll_stop(k->poll);
	uv_close((uv_handle_t *)take_ptr(k->poll), on_poll_closed);
	packets_done(&k->out);
	packets_init(&k->out);
	pthread_mutex_lock(&k->lock);
	close_fd(&k->fd);
	k->fd = -1;
	k->listed = k->answers = false;
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct entry *x = k->entries[i]; x; x = x->next)
			x->s.in_force = 0;
	pthread_mutex_unlock(&k->lock);
	log_event(LOG_WARN, "lost berth-egress: nothing leaves a sandbox", "why", why, NULL);
	questions_end(&k->questions);
	while ((t = k->waiting)) {
		k->waiting = t->next;
		finish(t);
	}
}

static void on_event(uv_poll_t *poll, int status, int events);

static void flush(struct policy_sync *k)
{
	if (!reached(k))
		return;
	if (packets_flush(&k->out, k->fd) < 0)
		return lose(k, strerror(errno));
	uv_poll_start(k->poll, UV_READABLE | (k->out.first ? UV_WRITABLE : 0), on_event);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	struct policy_sync *k = poll->data;
	uint8_t data[EGRESS_PACKET_MAX];
	struct err e;
	ssize_t n;
	int fd;

	if (status < 0)
		return lose(k, uv_strerror(status));
	if (events & UV_READABLE) {
		n = packet_receive(k->fd, data, sizeof(data), &fd);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0)
			return lose(k, n ? strerror(errno) : "it closed the connection");
		close_fd(&fd); /* none is wanted here */
		if (take_packet(k, (struct bytes){ data, (size_t)n }, &e) < 0)
			return lose(k, e.msg);
	}
	if ((events & UV_WRITABLE) && k->poll == poll)
		flush(k);
}

static void dial(struct policy_sync *k)
{
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
	cleanup(close_fd) int fd = socket(AF_UNIX, type, 0); /* CLOEXEC */
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const char *path = k->reactor->berthd->settings.egress_socket;

	if (fd < 0 || !str_copy(at.sun_path, sizeof(at.sun_path), path) ||
	    connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		return;
	pthread_mutex_lock(&k->lock);
	k->fd = take_fd(fd);
	pthread_mutex_unlock(&k->lock);
	k->poll = xcalloc(1, sizeof(*k->poll));
	uv_poll_init(&k->reactor->loop, k->poll, k->fd);
	k->poll->data = k;
	uv_poll_start(k->poll, UV_READABLE, on_event);
	log_event(LOG_INFO, "berth-egress is reached", NULL);
}

/* ---- all of them, after one of us was away ---- */

static void on_listed(void *data, const union node_any *record)
{
	struct policy_sync *k = data;
	const struct node_observation *o = &record->observation;
	uint32_t address;

	if (o->process != PRESENCE_PRESENT || !network_address_read(o->address, &address))
		return;
	egress_put(k, o->sandbox, o->generation, address, o->link == PRESENCE_ABSENT);
	tell_among_many(k, o->sandbox);
}

static void on_list_end(void *data, const union node_any *record, int *fd, const struct err *why)
{
	struct policy_sync *k = data;

	(void)record, (void)fd;
	tell_gathered(k);
	k->listing = false;
	if (why)
		k->listed = false;
}

static void list(struct policy_sync *k)
{
	static const struct node_call_events events = { .on_part = on_listed,
							.on_done = on_list_end };
	struct node_cursor ask = { 0 };

	k->listing = k->listed = true;
	node_call(&k->reactor->node, NODE_INVENTORY, &ask, -1, &events, k);
}

/* ---- rows that changed behind our back: another host's, or a secret's ---- */

struct look {
	struct job job;
	struct policy_sync *keeper;
	char after[SANDBOX_ID_SIZE];
	struct {
		char sandbox[SANDBOX_ID_SIZE];
		uint64_t version;
	} rows[STORE_NETWORK_PAGE];
	size_t count;
};

static void look_row(const char *sandbox, uint64_t version, void *arg)
{
	struct look *l = arg;

	(void)!str_copy(l->rows[l->count].sandbox, SANDBOX_ID_SIZE, sandbox);
	l->rows[l->count++].version = version;
}

static int look_run(struct job *job, struct store *s, struct err *e)
{
	struct look *l = container_of(job, struct look, job);

	/* What is damaged has a damaged record of its sandbox: the sweep tells of it. */
	return store_network_versions(s, job->reactor->berthd->settings.host, l->after, look_row,
				      l, e) < 0
		       ? -1
		       : 0;
}

static void look_done(struct job *job)
{
	cleanup(free_ptr) struct look *l = container_of(job, struct look, job);
	struct policy_sync *k = l->keeper;
	struct egress_status now;

	k->looking = false;
	if (job->failed)
		return;
	for (size_t i = 0; i < l->count; i++) {
		egress_status(k, l->rows[i].sandbox, &now);
		if (now.address && now.in_force < l->rows[i].version)
			tell_among_many(k, l->rows[i].sandbox);
	}
	tell_gathered(k);
	if (l->count == STORE_NETWORK_PAGE) { /* go on from there */
		memcpy(k->last, l->rows[l->count - 1].sandbox, sizeof(k->last));
		egress_look(k);
	} else {
		k->last[0] = '\0';
	}
}

static void look(struct policy_sync *k)
{
	struct look *l = xcalloc(1, sizeof(*l));

	k->looking = true;
	k->looked_ms = time_mono_ms();
	l->keeper = k;
	memcpy(l->after, k->last, sizeof(l->after));
	job_submit(k->reactor, NULL, &l->job, look_run, look_done);
}

/* ---- what was used, written down ---- */

struct save {
	struct job job;
	struct policy_sync *keeper;
	struct {
		char sandbox[SANDBOX_ID_SIZE];
		struct network_use use;
	} rows[SAVE_MAX];
	size_t count;
};

static int save_run(struct job *job, struct store *s, struct err *e)
{
	struct save *v = container_of(job, struct save, job);
	struct sandbox sb;

	for (size_t i = 0; i < v->count; i++) {
		if (store_sandbox_get(s, NULL, v->rows[i].sandbox, &sb, e) == 0) {
			if (store_network_used(s, sb.id, sb.owner, &v->rows[i].use, e) < 0)
				return -1;
		} else if (e->code != ERR_NOT_FOUND) { /* that is one that was never written */
			return -1;
		}
	}
	return 0;
}

static void save_done(struct job *job)
{
	struct save *v = container_of(job, struct save, job);
	struct policy_sync *k = v->keeper;
	struct entry *x;

	k->saving = false;
	if (job->failed)
		log_event(LOG_WARN, "what sandboxes sent is not written down", "why", job->e.msg,
			  NULL);
	pthread_mutex_lock(&k->lock);
	for (size_t i = 0; job->failed && i < v->count; i++)
		if ((x = find(k, v->rows[i].sandbox)))
			x->used = true;
	pthread_mutex_unlock(&k->lock);
	free(v);
}

/* What was used since, and who is long gone and has nothing more to write is forgotten. */
static void save_bucket(struct entry **at, uint64_t now, struct save *v)
{
	for (struct entry *x; (x = *at);) {
		if (x->used && v->count < SAVE_MAX) {
			x->used = false;
			memcpy(v->rows[v->count].sandbox, x->sandbox, SANDBOX_ID_SIZE);
			v->rows[v->count++].use = x->s.use;
		} else if (!x->used && !x->s.address && now - x->dropped_ms > FORGET_MS) {
			*at = x->next;
			free(x);
			continue;
		}
		at = &x->next;
	}
}

static void save(struct policy_sync *k)
{
	struct save *v = xcalloc(1, sizeof(*v));

	pthread_mutex_lock(&k->lock);
	k->saved_ms = time_mono_ms(); /* not before anybody was dropped that is seen here */
	for (size_t i = 0; i < BUCKETS; i++)
		save_bucket(&k->entries[i], k->saved_ms, v);
	pthread_mutex_unlock(&k->lock);
	if (v->count == 0) {
		free(v);
		return;
	}
	k->saving = true;
	v->keeper = k;
	job_submit(k->reactor, NULL, &v->job, save_run, save_done);
}

/* ---- the tick ---- */

static void expire(struct policy_sync *k, uint64_t now)
{
	struct telling *t;

	for (struct telling **at = &k->waiting; (t = *at);) {
		if (t->deadline_ms > now) {
			at = &t->next;
			continue;
		}
		*at = t->next;
		set_why(k, t, true, "berth-egress does not answer");
		finish(t);
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct policy_sync *k = timer->data;
	uint64_t now = time_mono_ms();
	bool look_now;

	if (!reached(k))
		dial(k);
	expire(k, now);
	questions_expire(&k->questions, now);
	refusals_flush(k->refusals);
	if (!k->saving && now - k->saved_ms >= SAVE_MS)
		save(k);
	if (!reached(k))
		return;
	if (!k->listed && !k->listing && k->reactor->node.up)
		list(k);
	pthread_mutex_lock(&k->lock);
	look_now = k->look || now - k->looked_ms >= LOOK_MS;
	if (!k->looking)
		k->look = false;
	pthread_mutex_unlock(&k->lock);
	if (look_now && !k->looking)
		look(k);
}

struct policy_sync *policy_sync_begin(struct reactor *r, refusals_owner_fn *owner_of)
{
	struct policy_sync *k = xcalloc(1, sizeof(*k));

	k->reactor = r;
	k->fd = -1;
	packets_init(&k->out);
	pthread_mutex_init(&k->lock, NULL);
	k->refusals = refusals_new(r, owner_of);
	uv_timer_init(&r->loop, &k->tick);
	k->tick.data = k;
	uv_timer_start(&k->tick, on_tick, 0, TICK_MS);
	return k;
}

void policy_sync_end(struct policy_sync *k)
{
	uv_close((uv_handle_t *)&k->tick, NULL);
	lose(k, "berthd is ending");
	refusals_free(k->refusals);
}

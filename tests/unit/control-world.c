#include "control-world.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "berthd/control/capacity.h"
#include "berthd/control/inflight.h"
#include "berthd/control/reconcile.h"
#include "berthd/control/sandbox-cache.h"
#include "berthd/control/takeover.h"
#include "berthd/journal/journal.h"
#include "berthd/main/daemon.h"
#include "berthd/netpolicy/policy-sync.h"
#include "berthd/netpolicy/vault.h"
#include "lib/file.h"
#include "lib/packet.h"
#include "lib/str.h"
#include "lib/time.h"
#include "test.h"

#define WAIT_MS  20000
#define QUIET_MS 60 /* longer than anything that is under way on a loop takes to show */

static void turn(struct control_world *w)
{
	uv_run(&w->r->loop, UV_RUN_NOWAIT);
	usleep(500);
}

static int nothing(struct job *job, struct store *s, struct err *e)
{
	(void)job, (void)s, (void)e;
	return 0;
}

static void on_settled(struct job *job)
{
	job->run = NULL;
}

/* There is one worker: what was handed to it before this has been done. */
static void settle(struct control_world *w)
{
	uint64_t end = time_mono_ms() + WAIT_MS;
	struct job job;

	job_submit(w->r, NULL, &job, nothing, on_settled);
	while (job.run && time_mono_ms() < end)
		turn(w);
	CHECK(!job.run);
}

/* ---- the world ---- */

static void node_listen(struct control_world *w)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	CHECK(str_copy(at.sun_path, sizeof(at.sun_path), w->b->settings.node_socket));
	w->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	CHECK(bind(w->listener, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(listen(w->listener, 4) == 0);
}

static void node_accept(struct control_world *w)
{
	uint64_t end = time_mono_ms() + WAIT_MS;

	w->node = -1;
	while (w->node < 0 && time_mono_ms() < end) {
		turn(w);
		w->node = accept4(w->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	}
	CHECK(w->node >= 0);
}

static void set_settings(struct control_world *w)
{
	struct berthd_settings *s = &w->b->settings;

	snprintf(s->database, sizeof(s->database), "dbname=%s", PQdb(w->db.sql));
	snprintf(s->node_socket, sizeof(s->node_socket), "%s/node", w->dir);
	snprintf(s->egress_socket, sizeof(s->egress_socket), "%s/none", w->dir);
	snprintf(s->state_dir, sizeof(s->state_dir), "%s", w->dir);
	snprintf(s->host, sizeof(s->host), HOST);
	snprintf(s->cell, sizeof(s->cell), "c1");
	snprintf(s->default_runtime, sizeof(s->default_runtime), "crun");
	s->timer_divisor = 1;
	s->sandboxes_max = 100;
}

static bool owner_of(struct berthd *b, const char *sandbox, char owner[SANDBOX_OWNER_SIZE])
{
	(void)b, (void)sandbox, (void)owner;
	return false;
}

/* The part of berthd_open() that a sequence of control needs. */
static void open_rooms(struct control_world *w)
{
	char key[sizeof(w->dir) + 8];
	struct berthd *b = w->b;
	struct err e;

	snprintf(key, sizeof(key), "%s/key", w->dir);
	CHECK_OK(vault_load(b->vault, key, &e), &e);
	bus_open(&b->bus);
	sandbox_cache_init(b->sandboxes);
	inflight_init(b->inflight);
	pthread_mutex_init(&b->capacity->lock, NULL);
	CHECK_OK(journals_open(b->journals, w->dir, 1 << 20, &e), &e);
	CHECK_OK(workers_open(&b->workers, b->settings.database, 1, &e), &e);
	for (int i = 0; i < NODE_VERB_COUNT; i++)
		w->deadlines[i] = WAIT_MS;
	w->r->node.deadlines = w->deadlines;
	CHECK_OK(reactor_open(w->r, b, &e), &e);
	b->egress = policy_sync_begin(w->r, owner_of);
	b->reconcile = reconcile_new(w->r); /* not begun: its looks are no part of a sequence */
}

struct control_world *control_world_make(void)
{
	struct control_world *w = xcalloc(1, sizeof(*w));

	w->db = world_make();
	w->b = berthd_new();
	w->r = &w->b->reactors[0];
	snprintf(w->dir, sizeof(w->dir), "control-test-XXXXXX");
	CHECK(mkdtemp(w->dir));
	set_settings(w);
	node_listen(w);
	open_rooms(w);
	node_accept(w);
	return w;
}

void control_world_done(struct control_world **at)
{
	struct control_world *w = *at;
	struct berthd *b = w->b;
	struct err e;

	settle(w); /* a step whose record a test has read may still wait for the loop */
	workers_close(&b->workers);
	policy_sync_end(b->egress);
	reconcile_end(b->reconcile);
	reactor_close(w->r);
	uv_run(&w->r->loop, UV_RUN_DEFAULT);
	CHECK_INT(uv_loop_close(&w->r->loop), 0);
	takeover_end(b->takeover);
	free(b->egress); /* berthd keeps it to its end */
	journals_close(b->journals);
	CHECK_OK(file_remove_tree(AT_FDCWD, w->dir, &e), &e);
	sandbox_cache_done(b->sandboxes);
	bus_close(&b->bus);
	berthd_free(b);
	close(w->node);
	close(w->listener);
	world_done(&w->db);
	free(w);
}

/* ---- berth-node ---- */

static bool receive(struct control_world *w, struct asked *a)
{
	uint8_t data[NODE_PACKET_MAX];
	struct node_head h;
	struct err e;
	int fd = -1;
	ssize_t n = packet_receive(w->node, data, sizeof(data), &fd);

	if (n <= 0)
		return false;
	close_fd(&fd);
	CHECK_OK(node_head_decode((struct bytes){ data, (size_t)n }, &h, &e), &e);
	*a = (struct asked){ .verb = h.verb, .id = h.id };
	CHECK_OK(node_body_decode(&h, &a->record, &e), &e);
	return true;
}

struct asked node_expect(struct control_world *w, enum node_verb verb)
{
	uint64_t end = time_mono_ms() + WAIT_MS;
	struct asked a = { 0 };

	while (!receive(w, &a) && time_mono_ms() < end)
		turn(w);
	CHECK_STR(a.verb ? node_verb_row(a.verb)->name : "nothing", node_verb_row(verb)->name);
	return a;
}

static void node_send(struct control_world *w, const struct buf *packet)
{
	CHECK(send(w->node, packet->data, packet->len, MSG_NOSIGNAL) == (ssize_t)packet->len);
}

void node_answer(struct control_world *w, const struct asked *a, const void *record)
{
	cleanup(buf_done) struct buf packet = buf_make(NODE_PACKET_MAX);

	node_encode(&packet, a->verb, NODE_REPLY, a->id, record);
	node_send(w, &packet);
}

void node_refuse(struct control_world *w, const struct asked *a, enum err_code code)
{
	cleanup(buf_done) struct buf packet = buf_make(NODE_PACKET_MAX);
	struct err e;

	err_set(&e, code, "refused by the test");
	node_encode_error(&packet, a->verb, a->id, &e);
	node_send(w, &packet);
}

void node_hang_up(struct control_world *w)
{
	close(w->node);
	node_accept(w);
}

struct asked node_does(struct control_world *w, enum node_verb verb)
{
	struct asked a = node_expect(w, verb);
	union node_any reply = { 0 };

	node_answer(w, &a, &reply);
	return a;
}

void node_is_left_alone(struct control_world *w)
{
	struct asked a = { 0 };
	uint64_t end;

	settle(w);
	end = time_mono_ms() + QUIET_MS;
	while (!receive(w, &a) && time_mono_ms() < end)
		turn(w);
	CHECK_STR(a.verb ? node_verb_row(a.verb)->name : "nothing", "nothing");
}

/* ---- what came of it ---- */

struct transition *transition_for(struct control_world *w, const char *id, struct outcome *o)
{
	struct transition *c = transition_new(w->r, "test");

	CHECK(str_copy(c->sb.id, sizeof(c->sb.id), id));
	c->data = o;
	return c;
}

void on_outcome(struct transition *c, const struct err *why)
{
	struct outcome *o = c->data;

	o->times++;
	o->failed = why;
	if (why)
		o->why = *why;
	o->sb = c->sb;
	o->tomb = c->tomb;
	transition_free(c);
}

void wait_outcome(struct control_world *w, struct outcome *o)
{
	uint64_t end = time_mono_ms() + WAIT_MS;

	while (!o->times && time_mono_ms() < end)
		turn(w);
	CHECK_INT(o->times, 1);
}

struct sandbox record_of(struct control_world *w, const char *id)
{
	struct sandbox sb = { 0 };
	struct err e;

	CHECK_OK(store_sandbox_get(w->db.s, NULL, id, &sb, &e), &e);
	return sb;
}

const char *history_of(struct control_world *w, const char *id)
{
	static char text[512];
	const char *args[] = { id };
	PGresult *res = PQexecParams(w->db.sql,
				     "SELECT string_agg(event || ' ', '' ORDER BY seq) "
				     "FROM sandbox_event WHERE sandbox_id = $1",
				     1, NULL, args, NULL, NULL, 0);

	if (PQresultStatus(res) != PGRES_TUPLES_OK)
		test_fail(__FILE__, __LINE__, "%s", PQerrorMessage(w->db.sql));
	snprintf(text, sizeof(text), "%s", PQgetvalue(res, 0, 0));
	PQclear(res);
	return text;
}

void refuse_state(struct control_world *w, const char *state, const char *sqlstate)
{
	char sql[512];

	raw(w->db.sql, "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
		       "$$BEGIN RAISE EXCEPTION 'refused by the test' USING ERRCODE = "
		       "TG_ARGV[0]; END$$");
	snprintf(sql, sizeof(sql),
		 "CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON sandbox FOR EACH ROW "
		 "WHEN (NEW.state = '%s') EXECUTE FUNCTION refuse('%s')",
		 state, sqlstate);
	raw(w->db.sql, sql);
}

/* ---- how a build fails ---- */

void check_step_refused(struct control_world *w, struct outcome *o, enum node_verb step,
			enum node_verb undo)
{
	struct asked a;
	bool stops = undo == NODE_STOP;

	if (step == NODE_START)
		node_does(w, NODE_CREATE);
	a = node_expect(w, step);
	node_refuse(w, &a, ERR_INTERNAL);
	a = node_expect(w, undo);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_FAILED);
	CHECK_STR(stops ? a.record.stop.sandbox : a.record.target.sandbox, ID("1"));
	CHECK_INT(stops ? a.record.stop.generation : a.record.target.generation, 1);
	CHECK_INT(o->times, 0);
	node_answer(w, &a, &(union node_any){ 0 });
	wait_outcome(w, o);
	CHECK(o->failed);
	CHECK_INT(o->why.code, ERR_INTERNAL);
	node_is_left_alone(w);
}

void check_start_unanswered(struct control_world *w, struct outcome *o, enum sandbox_state state)
{
	struct asked a;
	uint64_t version;

	node_does(w, NODE_CREATE);
	a = node_expect(w, NODE_START);
	wait_outcome(w, o);
	CHECK(o->failed);
	CHECK(node_unanswered(&o->why));
	version = record_of(w, ID("1")).version;
	CHECK_INT(record_of(w, ID("1")).state, state);
	node_answer(w, &a, &(union node_any){ 0 });
	node_is_left_alone(w);
	CHECK_INT(record_of(w, ID("1")).version, version);
	CHECK_INT(o->times, 1);
}

void check_start_deleted(struct control_world *w, struct outcome *o, enum sandbox_state state)
{
	struct asked a;
	struct err e;

	node_does(w, NODE_CREATE);
	a = node_expect(w, NODE_START);
	CHECK_OK(try_move(w->db.s, ID("1"), state, SANDBOX_DELETING, &e), &e);
	node_answer(w, &a, &(union node_any){ 0 });
	wait_outcome(w, o);
	CHECK_INT(record_of(w, ID("1")).state, SANDBOX_DELETING);
	node_is_left_alone(w);
}

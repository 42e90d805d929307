/* The first steps of an exec: from the request to its journal, or to one that was begun before. */
#include <string.h>

#include "berthd/control/sandbox-cache.h"
#include "berthd/exec/exec.h"
#include "berthd/exec/init-dial.h"
#include "berthd/exec/usage.h"
#include "berthd/runtime/berthd.h"
#include "lib/id.h"
#include "lib/str.h"
#include "lib/time.h"

static int check_replay(const struct journal_head *want, struct journal *j, struct err *e)
{
	if (!want->key[0] || strcmp(want->key, j->head.key) != 0)
		return err_set(e, ERR_CONFLICT, "there is an exec %s already", want->ask.id);
	if (strcmp(want->body, j->head.body) != 0) {
		err_set(e, ERR_CONFLICT, "this Idempotency-Key was used for another request");
		return err_fix(e, "A key belongs to one request; take a new one.");
	}
	return 0;
}

/* It was begun before, under the same key: hear how that goes. */
static void replay(struct exec *x, struct journal *j)
{
	struct tail *client = take_ptr(x->client);

	if (client) {
		client->exec = NULL;
		tail_follow(client, j, 0);
	}
	exec_close(x);
}

static int take_journal(struct exec *x, struct journal **made, struct journal **there,
			struct err *e)
{
	struct journals *js = x->reactor->berthd->journals;
	char id[EXEC_ID_SIZE];

	memcpy(id, x->head.ask.id, sizeof(id));
	if (journal_create(js, &x->head, made, e) == 0)
		return 0;
	if (e->code != ERR_CONFLICT || journal_find(js, x->sandbox, id, there, e) < 0)
		return -1;
	if (check_replay(&x->head, *there, e) == 0)
		return 0;
	journal_unref(take_ptr(*there));
	return -1;
}

/* ---- how many requests its sandbox had made before ---- */

static void run_counted(struct exec *x)
{
	cleanup(exec_request_done) struct exec_request ask = x->waiting;

	x->waiting = (struct exec_request){ 0 };
	x->counting = false;
	uv_timer_stop(&x->deadline);
	exec_run(x, take_fd(x->way_fd), &ask);
}

static void on_count_late(uv_timer_t *timer)
{
	run_counted(timer->data); /* what comes now may have the command's own in it */
}

static void on_counted(void *data, const struct egress_count *count)
{
	struct exec *x = data;

	if (exec_came_back(x) || x->phase != EXEC_DIALING || !x->counting)
		return;
	x->counting = false;
	x->requests_before = *count;
	if (x->way_fd >= 0)
		run_counted(x);
}

/*
 * Asked while the way is looked for and the journal is made; the command waits for the rest.
 * What begins between the question and its own begin is told by `begun`.
 */
static void count(struct exec *x)
{
	x->begun = sandbox_cache_begun(x->reactor->berthd->sandboxes, x->sandbox, NULL);
	(void)exec_ask_requests(x, on_counted);
}

/* ---- */

static void on_way(void *data, struct init_dial *way, const struct err *why)
{
	struct exec *x = data;
	struct journal *made = NULL, *there = NULL;
	cleanup(exec_request_done) struct exec_request ask = { 0 };
	uint64_t begun;
	struct err e;

	if (exec_came_back(x))
		return;
	if (why || x->unwanted)
		return exec_refuse(x, why);
	memcpy(x->sandbox, way->sandbox, sizeof(x->sandbox));
	x->generation = way->generation;
	memcpy(x->head.sandbox, way->sandbox, sizeof(x->head.sandbox));
	memcpy(x->head.owner, way->owner, sizeof(x->head.owner));
	x->head.generation = way->generation;
	x->head.started_ms = time_wall_ms();
	x->head.started_boot_ms = time_boot_ms();
	exec_usage_begin(x, &way->before);
	if (x->counted != way->generation) /* it was woken for this */
		count(x);
	begun = x->begun;
	ask = x->head.ask; /* the journal has it without its variables: they may be secrets */
	x->head.ask.env = (struct strv){ 0 };
	x->head.ask.argv = (struct strv){ 0 };
	for (size_t i = 0; i < ask.argv.len; i++)
		strv_add(&x->head.ask.argv, ask.argv.items[i]);
	sandbox_cache_env(x->reactor->berthd->sandboxes, x->sandbox, &ask.env);
	if (take_journal(x, &made, &there, &e) < 0)
		return exec_refuse(x, &e);
	if (there) {
		replay(x, there);
		journal_unref(there);
		return;
	}
	exec_bind(x, made);
	x->alone = x->alone && x->begun == begun + 1;
	if (x->client)
		tail_expect(x->client, made, x, exec_caught_up);
	if (!x->counting)
		return exec_run(x, take_fd(way->fd), &ask);
	x->way_fd = take_fd(way->fd);
	x->waiting = ask;
	ask = (struct exec_request){ 0 };
	uv_timer_start(&x->deadline, on_count_late, EXEC_COUNT_MS, 0);
}

static void begin(struct exec *x, const struct caller *by, const struct exec_begin *b)
{
	struct init_dial_ask way = { by->reactor, x->request, by->owner, b->sandbox };

	x->pending += 2; /* the search, and until we are through here */
	if (str_copy(x->sandbox, sizeof(x->sandbox), b->sandbox))
		count(x);
	init_dial_find(&way, on_way, x);
	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): `pending` above holds it until here */
	(void)!exec_came_back(x);
}

/* With a key the id follows from it, unless the caller chose one: the same key, the same exec. */
static void choose_id(struct exec_begin *b)
{
	if (b->ask.id[0])
		return;
	memcpy(b->ask.id, "ex_", 3);
	if (b->key[0])
		memcpy(b->ask.id + 3, b->key, 32);
	else
		id_random(b->ask.id + 3, ID_RANDOM_CHARS);
}

void exec_begin(const struct caller *by, struct exec_begin *b, struct tail *t)
{
	struct exec *x = exec_new(by->reactor);
	struct journal *j = NULL;
	struct err e;

	choose_id(b);
	(void)!str_copy(x->request, sizeof(x->request), by->request);
	x->client = t;
	t->exec = x;
	x->keep = b->keep || b->background;
	x->head.background = b->background;
	memcpy(x->head.group, b->group, sizeof(x->head.group));
	memcpy(x->head.key, b->key, sizeof(b->key));
	memcpy(x->head.body, b->body, sizeof(b->body));
	x->head.ask = b->ask;
	x->head.ask.flags |= EXEC_DOUBT;
	b->ask = (struct exec_request){ 0 };
	if (!x->head.key[0] ||
	    journal_find(by->reactor->berthd->journals, b->sandbox, x->head.ask.id, &j, &e) < 0)
		return begin(x, by, b);
	if (by->owner && strcmp(by->owner, j->head.owner) != 0)
		err_set(&e, ERR_NOT_FOUND, "no sandbox %s", b->sandbox);
	else if (check_replay(&x->head, j, &e) == 0) {
		replay(x, j);
		journal_unref(j);
		return;
	}
	journal_unref(j);
	exec_refuse(x, &e);
}

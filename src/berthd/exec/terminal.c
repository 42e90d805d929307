#include "berthd/exec/terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "berthd/exec/exec-find.h"
#include "berthd/exec/mailbox.h"
#include "berthd/runtime/berthd.h"
#include "core/constants.h"
#include "lib/id.h"

#define VIEWERS_MAX   64 /* of one terminal */

/* What of one viewer may be on its way to a command that does not read. */
#define TELLING_MAX   16
#define TELLING_BYTES (64UL * 1024)

/* What there is: bash as at a login, or else sh. */
#define DEFAULT_SHELL "command -v bash >/dev/null && exec bash -l; exec sh -l"

uint64_t terminal_timeout_ms(const struct reactor *r)
{
	return constant_ms(CONSTANT_TERMINAL, (unsigned)r->berthd->settings.timer_divisor);
}

int terminal_size(int64_t cols, int64_t rows, struct exec_size *ret, struct err *e)
{
	struct exec_size size = { 0 };

	if (cols > 0 && cols <= EXEC_SIZE_MAX && rows > 0 && rows <= EXEC_SIZE_MAX)
		size = (struct exec_size){ (uint16_t)cols, (uint16_t)rows };
	if (exec_size_check(&size, e) < 0)
		return -1;
	*ret = size;
	return 0;
}

/* ---- its life ---- */

static void choose_shell(struct strv *argv)
{
	strv_add(argv, "/bin/sh");
	strv_add(argv, "-c");
	strv_add(argv, DEFAULT_SHELL);
}

/* With a key the id follows from it: the same key, the same terminal. */
static void choose_id(char id[EXEC_ID_SIZE], const char *key)
{
	memcpy(id, "tm_", 3);
	if (key[0])
		memcpy(id + 3, key, 32);
	else
		id_random(id + 3, ID_RANDOM_CHARS);
}

static int fill(struct terminal_begin *b, struct exec_begin *to, struct err *e)
{
	struct exec_request *ask = &to->ask;

	strv_add(&ask->env, "TERM=xterm-256color");
	for (size_t i = 0; i < b->ask.env.len; i++)
		strv_add(&ask->env, b->ask.env.items[i]); /* the last one counts */
	ask->argv = b->ask.argv;
	b->ask.argv = (struct strv){ 0 };
	if (ask->argv.len == 0)
		choose_shell(&ask->argv);
	ask->flags = EXEC_STDIN | EXEC_PTY;
	ask->size = b->ask.size;
	ask->timeout_ms = b->ask.timeout_ms;
	memcpy(ask->id, b->ask.id, sizeof(ask->id));
	memcpy(ask->cwd, b->ask.cwd, sizeof(ask->cwd));
	if (exec_request_check(ask, e) < 0)
		return -1;
	if (!ask->id[0])
		choose_id(ask->id, b->key);
	memcpy(to->key, b->key, sizeof(to->key));
	memcpy(to->body, b->body, sizeof(to->body));
	return 0;
}

int terminal_begin(const struct caller *by, struct terminal_begin *b, struct tail *t,
		   struct err *e)
{
	struct exec_begin to = { .sandbox = b->sandbox, .keep = true };
	int n = fill(b, &to, e);

	exec_request_done(&b->ask);
	if (n < 0)
		exec_request_done(&to.ask);
	else
		exec_begin(by, &to, t);
	return n;
}

int terminal_find(const struct caller *by, const char *sandbox, const char *id,
		  struct journal **ret, struct err *e)
{
	struct journal *j;

	if (exec_find(by, sandbox, id, &j, e) < 0) {
		if (e->code == ERR_NOT_FOUND)
			err_set(e, ERR_NOT_FOUND, "there is no terminal %.60s in %.60s", id,
				sandbox);
		return -1;
	}
	if (j->head.ask.flags & EXEC_PTY) {
		*ret = j;
		return 0;
	}
	journal_unref(j);
	return err_set(e, ERR_NOT_FOUND, "exec %s is no terminal", id);
}

struct resizing {
	struct journal *journal;
	struct exec_size size;
	kill_done_fn done;
	void *data;
};

static void on_resized(void *data, const struct err *why)
{
	cleanup(free_ptr) struct resizing *r = data;

	if (!why)
		journal_resize(r->journal, &r->size);
	r->done(r->data, why);
}

void terminal_resize(struct reactor *r, struct journal *j, const struct exec_size *size,
		     kill_done_fn done, void *data)
{
	struct resizing *resizing = xcalloc(1, sizeof(*resizing));

	*resizing = (struct resizing){ j, *size, done, data };
	mail_size(r, j, size, on_resized, resizing);
}

struct ending {
	struct journal *journal;
	kill_done_fn done;
	void *data;
};

static void on_ended(void *data, const struct err *why)
{
	cleanup(free_ptr) struct ending *end = data;

	if (!why)
		journal_remove(end->journal);
	end->done(end->data, why);
}

void terminal_end(struct reactor *r, struct journal *j, kill_done_fn done, void *data)
{
	static const struct kill_spec kill = { .signum = SIGKILL };
	struct ending *end = xcalloc(1, sizeof(*end));

	*end = (struct ending){ j, done, data };
	exec_kill(r, j, &kill, on_ended, end);
}

/* ---- viewers ---- */

struct terminal_view {
	struct reactor *reactor;
	struct tail *tail; /* NULL: closed, or it has ended */
	struct journal *journal;
	uint64_t from;
	const struct terminal_sink *sink;
	void *data;
	unsigned telling;     /* words on their way to the command, */
	size_t telling_bytes; /* with so many bytes since there were none */
	bool open;            /* the owner has not closed it */
};

static void view_free(struct terminal_view *v)
{
	if (v->open || v->telling > 0)
		return; /* these will still come back to us */
	atomic_fetch_sub(&v->journal->viewers, 1);
	journal_unref(v->journal);
	free(v);
}

static bool on_output(struct tail *t, enum frame_type stream, uint8_t *data, size_t len)
{
	struct terminal_view *v = t->data;

	(void)stream;
	return v->sink->output(v->data, data, len);
}

static void on_gap(struct tail *t, uint64_t bytes)
{
	struct terminal_view *v = t->data;

	v->sink->gap(v->data, t->position, bytes);
}

static void on_finished(struct tail *t, const struct exec_exit *exit, const struct err *why)
{
	struct terminal_view *v = t->data;

	tail_close(take_ptr(v->tail));
	v->sink->finished(v->data, exit, why);
}

static const struct tail_events tail_events = {
	.output = on_output,
	.gap = on_gap,
	.finished = on_finished,
};

int terminal_view(struct reactor *r, struct journal *j, uint64_t from, struct terminal_view **ret,
		  struct err *e)
{
	struct terminal_view *v;
	struct journal_view now;

	journal_look(j, &now);
	if (from > journal_view_end(&now))
		return err_set(e, ERR_INVALID, "terminal %s has said no more than %llu bytes",
			       j->head.ask.id, (unsigned long long)journal_view_end(&now));
	if (atomic_fetch_add(&j->viewers, 1) >= VIEWERS_MAX) {
		atomic_fetch_sub(&j->viewers, 1);
		err_set(e, ERR_LIMIT, "terminal %s has %d viewers already", j->head.ask.id,
			VIEWERS_MAX);
		return err_fix(e, "Detach one of them first.");
	}
	v = xcalloc(1, sizeof(*v));
	v->reactor = r;
	v->journal = journal_ref(j);
	v->from = from;
	v->open = true;
	*ret = v;
	return 0;
}

void terminal_view_follow(struct terminal_view *v, const struct terminal_sink *sink, void *data)
{
	v->sink = sink;
	v->data = data;
	v->tail = tail_new(v->reactor, &tail_events, v);
	tail_follow(v->tail, v->journal, v->from);
}

void terminal_view_resume(struct terminal_view *v)
{
	if (v->tail)
		tail_resume(v->tail);
}

/* It takes no more keys than the command does; what a viewer that stays has sent is not lost. */
static void on_told(void *data, const struct err *why)
{
	struct terminal_view *v = data;

	(void)why; /* if it has ended, the tail says so */
	v->telling--;
	if (!v->open)
		return view_free(v);
	if (v->telling > 0)
		return;
	v->telling_bytes = 0;
	v->sink->room(v->data); /* which may close it */
}

/* True: enough is on its way. */
static bool count(struct terminal_view *v, size_t bytes)
{
	v->telling++;
	v->telling_bytes += bytes;
	return v->telling >= TELLING_MAX || v->telling_bytes >= TELLING_BYTES;
}

bool terminal_view_input(struct terminal_view *v, struct bytes keys)
{
	mail_keys(v->reactor, v->journal, keys, on_told, v);
	return count(v, keys.len);
}

bool terminal_view_resize(struct terminal_view *v, const struct exec_size *size)
{
	journal_resize(v->journal, size);
	mail_size(v->reactor, v->journal, size, on_told, v);
	return count(v, sizeof(*size));
}

bool terminal_view_is_waiting(const struct terminal_view *v)
{
	return v->telling > 0;
}

void terminal_view_close(struct terminal_view *v)
{
	v->open = false;
	if (v->telling > 0)
		mail_drop(v->reactor, v->journal, v);
	if (v->tail)
		tail_close(take_ptr(v->tail));
	view_free(v);
}

#include "berthd/api/v1/execs.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/exec/exec.h"
#include "berthd/runtime/berthd.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define LIST_LIMIT     100
#define LIST_LIMIT_MAX 1000
#define LOOKS_MAX      2000 /* journals that one page opens; the next one goes on behind them */
#define FORGET_AT_ONCE 64   /* journals that one job removes */
#define OWNER_LOOKS    16   /* a sandbox has one owner: a few of its journals say whose it is */

/* ---- one ---- */

static void add_time(struct buf *out, const char *name, uint64_t wall_ms)
{
	char text[TIME_TEXT_SIZE];

	json_key(out, name);
	if (wall_ms == 0) {
		buf_adds(out, "null");
		return;
	}
	time_text(wall_ms, text);
	json_add_string(out, text);
}

static void add_argv(struct buf *out, const struct strv *argv)
{
	json_key(out, "argv");
	json_open(out, '[');
	for (size_t i = 0; i < argv->len; i++) {
		const char *arg = argv->items[i];

		if (i > 0)
			buf_adds(out, ",");
		json_add_text(out, arg, utf8_valid_prefix(arg, strlen(arg)));
	}
	buf_adds(out, "]");
}

void exec_record_members(struct buf *out, struct journal *j)
{
	struct journal_view v;
	uint64_t all;

	journal_look(j, &v);
	all = journal_view_end(&v);
	json_str(out, "sandbox", j->head.sandbox);
	add_argv(out, &j->head.ask.argv);
	if (j->head.ask.shell[0])
		json_str(out, "shell", j->head.ask.shell);
	if (!j->head.ask.shell[0] || v.slot.exit.kind == EXEC_NONE)
		json_str(out, "cwd", j->head.ask.cwd);
	if (j->head.group[0])
		json_str(out, "group", j->head.group);
	json_bool(out, "background", j->head.background);
	json_str(out, "state", v.slot.state == JOURNAL_RUNNING ? "running" : "ended");
	json_int(out, "pid", v.slot.pid);
	add_time(out, "started_at", j->head.started_ms);
	add_time(out, "ended_at", v.slot.ended_ms);
	json_int(out, "output_bytes", (int64_t)all);
	json_int(out, "gap_bytes", (int64_t)(all - v.slot.recorded));
	exec_exit_json(out, j, &v.slot.exit);
}

void exec_record_json(struct buf *out, struct journal *j)
{
	json_open(out, '{');
	exec_record_members(out, j);
	buf_adds(out, "}");
}

int execs_find(const struct request *rq, struct journal **ret, struct err *e)
{
	const char *owner = request_owner(rq);
	struct journal *j;

	if (journal_find(rq->reactor->berthd->journals, rq->param, rq->sub, &j, e) < 0)
		return -1;
	if (owner && strcmp(owner, j->head.owner) != 0) {
		journal_unref(j);
		err_set(e, ERR_NOT_FOUND, "there is no exec %s in %s", rq->sub, rq->param);
		err_fix(e, "'berth execs %s' lists its commands.", rq->param);
		return -1;
	}
	*ret = j;
	return 0;
}

int execs_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct journal *j;

	(void)s;
	if (execs_find(rq, &j, e) < 0)
		return -1;
	exec_record_json(reply, j);
	journal_unref(j);
	return 0;
}

static bool has_ended(struct journal *j)
{
	struct journal_view v;

	journal_look(j, &v);
	return v.slot.state != JOURNAL_RUNNING;
}

static bool can_forget(struct journal *j)
{
	return has_ended(j) && !journal_is_doubt(j);
}

int execs_forget_one(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct journal *j;
	bool ended;

	(void)s;
	if (execs_find(rq, &j, e) < 0)
		return -1;
	ended = can_forget(j);
	if (ended)
		journal_remove(j);
	journal_unref(j);
	if (!ended) {
		err_set(e, ERR_CONFLICT, "exec %s is running, or may be", rq->sub);
		return err_fix(e, "Kill it first; what it said is kept until it has ended.");
	}
	json_open(reply, '{');
	json_int(reply, "removed", 1);
	buf_adds(reply, "}");
	return 0;
}

/* ---- all of a sandbox ---- */

struct names {
	struct strv ids;
	const char *after;
};

static int add_name(void *data, const char *sandbox, const char *id)
{
	struct names *n = data;

	(void)sandbox;
	if (strcmp(id, n->after) > 0)
		strv_add(&n->ids, id);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void names_done(struct names *n)
{
	strv_done(&n->ids);
}

static struct journal *open_one(struct request *rq, const char *id)
{
	struct journal *j;
	struct err ignored;

	if (!str_copy(rq->sub, sizeof(rq->sub), id) || execs_find(rq, &j, &ignored) < 0)
		return NULL;
	return j;
}

/* Sorted; of a sandbox that this request may see, or could while it was there. */
static int names_of(struct request *rq, struct store *s, struct names *n, struct err *e)
{
	struct journals *js = rq->reactor->berthd->journals;
	struct journal *own = NULL;
	struct sandbox sb;

	if (sandbox_id_check(rq->param, e) < 0)
		return -1;
	journals_each(js, rq->param, add_name, n);
	if (n->ids.len > 0)
		qsort(n->ids.items, n->ids.len, sizeof(char *), by_name);
	for (size_t i = 0; i < n->ids.len && i < OWNER_LOOKS && !own; i++)
		own = open_one(rq, n->ids.items[i]);
	if (!own)
		return store_sandbox_get(s, request_owner(rq), rq->param, &sb, e);
	journal_unref(own);
	return 0;
}

struct filter {
	char state[16], background[8];
	uint64_t limit;
	char after[EXEC_ID_SIZE];
};

static int read_filter(const struct request *rq, struct filter *f, struct err *e)
{
	char limit[24];
	bool found;

	f->limit = LIST_LIMIT;
	if (http_query(rq->query, "state", f->state, sizeof(f->state), &found, e) < 0 ||
	    http_query(rq->query, "background", f->background, sizeof(f->background), &found, e) <
		    0 ||
	    http_query(rq->query, "after", f->after, sizeof(f->after), &found, e) < 0 ||
	    http_query(rq->query, "limit", limit, sizeof(limit), &found, e) < 0 ||
	    (found && str_u64(limit, &f->limit, e) < 0))
		return -1;
	if (f->limit < 1 || f->limit > LIST_LIMIT_MAX)
		return err_set(e, ERR_INVALID, "limit must be 1 to %d", LIST_LIMIT_MAX);
	if (f->state[0] && strcmp(f->state, "running") != 0 && strcmp(f->state, "ended") != 0)
		return err_set(e, ERR_INVALID, "state must be running or ended");
	return 0;
}

static bool passes(const struct filter *f, struct journal *j)
{
	if (f->state[0] && has_ended(j) != (strcmp(f->state, "ended") == 0))
		return false;
	return !f->background[0] || j->head.background == (strcmp(f->background, "1") == 0);
}

int execs_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct filter f = { 0 };
	cleanup(names_done) struct names names = { .after = f.after };
	const char *last = "";
	size_t i, count = 0;

	if (read_filter(rq, &f, e) < 0 || names_of(rq, s, &names, e) < 0)
		return -1;
	json_open(reply, '{');
	json_key(reply, "execs");
	json_open(reply, '[');
	for (i = 0; i < names.ids.len && i < LOOKS_MAX && count < f.limit; i++) {
		struct journal *j = open_one(rq, names.ids.items[i]);

		if (j && passes(&f, j)) {
			exec_record_json(reply, j);
			count++;
		}
		journal_unref(j);
		last = names.ids.items[i];
	}
	buf_adds(reply, "]");
	json_str(reply, "next", i < names.ids.len ? last : "");
	buf_adds(reply, "}");
	return 0;
}

/* ---- to forget all that have ended ---- */

struct forgetting {
	struct request *rq;
	struct job job;
	struct names names;
	bool named; /* they were listed */
	size_t at;  /* of the names */
	int64_t removed;
};

static int forget_some(struct job *job, struct store *s, struct err *e)
{
	struct forgetting *f = container_of(job, struct forgetting, job);

	if (!f->named && names_of(f->rq, s, &f->names, e) < 0)
		return -1;
	f->named = true;
	for (size_t n = 0; n < FORGET_AT_ONCE && f->at < f->names.ids.len; n++) {
		struct journal *j = open_one(f->rq, f->names.ids.items[f->at++]);

		if (j && can_forget(j)) {
			journal_remove(j);
			f->removed++;
		}
		journal_unref(j);
	}
	return 0;
}

/* The rest goes to the end of the line: a worker is not one request's for as long as it likes. */
static void on_some_forgotten(struct job *job)
{
	struct forgetting *f = container_of(job, struct forgetting, job);
	cleanup(buf_done) struct buf reply = buf_make(64);
	struct request *rq = f->rq;

	if (!job->failed && f->at < f->names.ids.len)
		return job_submit(rq->reactor, request_owner(rq), job, forget_some,
				  on_some_forgotten);
	json_open(&reply, '{');
	json_int(&reply, "removed", f->removed);
	buf_adds(&reply, "}");
	if (job->failed)
		request_fail(rq, &job->e);
	else
		request_reply(rq, 200, &reply);
	names_done(&f->names);
	free(f);
}

void execs_forget(struct request *rq)
{
	struct forgetting *f = xcalloc(1, sizeof(*f));

	f->rq = rq;
	f->names.after = "";
	job_submit(rq->reactor, request_owner(rq), &f->job, forget_some, on_some_forgotten);
}

#include "berthd/api/v1/execs.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/exec/exec-find.h"
#include "berthd/exec/exec.h"
#include "http/target.h"
#include "lib/json.h"
#include "lib/str.h"
#include "lib/time.h"

#define LIST_LIMIT     100
#define LIST_LIMIT_MAX 1000
#define LOOKS_MAX      2000 /* journals that one page opens; the next one goes on behind them */
#define FORGET_AT_ONCE 64   /* journals that one job removes */

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
	struct caller by = request_caller(rq);

	return exec_find(&by, rq->param, rq->sub, ret, e);
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

int execs_forget_one(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct journal *j;
	bool ended;

	(void)s;
	if (execs_find(rq, &j, e) < 0)
		return -1;
	ended = exec_forget(j);
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
	if (f->state[0] && exec_has_ended(j) != (strcmp(f->state, "ended") == 0))
		return false;
	return !f->background[0] || j->head.background == (strcmp(f->background, "1") == 0);
}

int execs_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct caller by = request_caller(rq);
	cleanup(strv_done) struct strv ids = { 0 };
	struct filter f = { 0 };
	const char *last = "";
	size_t i, count = 0;

	if (read_filter(rq, &f, e) < 0 || exec_ids(&by, s, rq->param, f.after, &ids, e) < 0)
		return -1;
	json_open(reply, '{');
	json_key(reply, "execs");
	json_open(reply, '[');
	for (i = 0; i < ids.len && i < LOOKS_MAX && count < f.limit; i++) {
		struct journal *j = exec_try(&by, rq->param, ids.items[i]);

		if (j && passes(&f, j)) {
			exec_record_json(reply, j);
			count++;
		}
		journal_unref(j);
		last = ids.items[i];
	}
	buf_adds(reply, "]");
	json_str(reply, "next", i < ids.len ? last : "");
	buf_adds(reply, "}");
	return 0;
}

/* ---- to forget all that have ended ---- */

struct forgetting {
	struct request *rq;
	struct job job;
	struct strv ids;
	bool named; /* they were listed */
	size_t at;  /* of the ids */
	int64_t removed;
};

static int forget_some(struct job *job, struct store *s, struct err *e)
{
	struct forgetting *f = container_of(job, struct forgetting, job);
	struct caller by = request_caller(f->rq);

	if (!f->named && exec_ids(&by, s, f->rq->param, "", &f->ids, e) < 0)
		return -1;
	f->named = true;
	for (size_t n = 0; n < FORGET_AT_ONCE && f->at < f->ids.len; n++) {
		struct journal *j = exec_try(&by, f->rq->param, f->ids.items[f->at++]);

		f->removed += j && exec_forget(j);
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

	if (!job->failed && f->at < f->ids.len)
		return job_submit(rq->reactor, request_owner(rq), job, forget_some,
				  on_some_forgotten);
	json_open(&reply, '{');
	json_int(&reply, "removed", f->removed);
	buf_adds(&reply, "}");
	if (job->failed)
		request_fail(rq, &job->e);
	else
		request_reply(rq, 200, &reply);
	strv_done(&f->ids);
	free(f);
}

void execs_forget(struct request *rq)
{
	struct forgetting *f = xcalloc(1, sizeof(*f));

	f->rq = rq;
	job_submit(rq->reactor, request_owner(rq), &f->job, forget_some, on_some_forgotten);
}

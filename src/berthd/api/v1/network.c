#include "berthd/api/v1/network.h"

#include <stdlib.h>
#include <string.h>

#include "berthd/front/idempotency.h"
#include "berthd/netpolicy/policy-sync.h"
#include "berthd/runtime/berthd.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/str.h"
#include "store/sandbox.h"

int network_check(const struct key *key, const char *text, size_t len, struct err *e)
{
	cleanup(network_done) struct network n = { 0 };

	if (network_read(text, len, &n, e) < 0)
		return -1;
	if (network_has_address(&n) && key->role != ROLE_ADMIN) {
		err_set(e, ERR_DENIED, "a rule with an address needs an admin's key");
		return err_fix(e, "Name the host instead, or have an admin set this policy.");
	}
	return 0;
}

static void use_json(struct buf *out, const struct network_use *use)
{
	json_key(out, "usage");
	json_open(out, '{');
	json_int(out, "connections", (int64_t)use->connections);
	json_int(out, "requests", (int64_t)use->requests);
	json_int(out, "bytes_out", (int64_t)use->bytes_out);
	json_int(out, "bytes_in", (int64_t)use->bytes_in);
	buf_adds(out, "}");
}

static const char *why_not(const struct egress_status *st, uint64_t version)
{
	if (st->in_force == version)
		return "";
	if (st->in_force > version)
		return "a newer policy has taken its place";
	if (!st->address)
		return "the sandbox does not run";
	if (st->cut)
		return "its link to the network is gone: put it to sleep and wake it";
	if (!st->reached)
		return "berth-egress cannot be reached: nothing leaves the sandbox";
	return st->why[0] ? st->why : "it was not confirmed yet";
}

/* The row, and what is known of it here. */
static int status_json(struct request *rq, const struct network_row *row, struct buf *out,
		       struct err *e)
{
	cleanup(network_done) struct network n = { 0 };
	struct egress_status st;
	const char *why;

	if (network_read(row->policy, strlen(row->policy), &n, e) < 0)
		return -1;
	egress_status(rq->reactor->berthd->egress, rq->param, &st);
	why = why_not(&st, row->version);
	json_open(out, '{');
	network_json(out, &n);
	json_str(out, "phase", row->locked ? "locked" : "bootstrap");
	json_int(out, "version", (int64_t)row->version);
	json_bool(out, "in_force", st.in_force == row->version);
	json_str(out, "reason", why);
	use_json(out, st.use.connections > row->use.connections ? &st.use : &row->use);
	buf_adds(out, "}");
	return 0;
}

static int find(struct request *rq, struct store *s, struct sandbox *sb, struct err *e)
{
	if (sandbox_id_check(rq->param, e) < 0 ||
	    store_sandbox_get(s, request_owner(rq), rq->param, sb, e) < 0)
		return -1;
	return 0;
}

int network_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	cleanup(free_ptr) struct network_row *row = xcalloc(1, sizeof(*row));
	struct sandbox sb = { 0 };

	if (find(rq, s, &sb, e) < 0 || store_network_row(s, sb.id, row, e) < 0)
		return -1;
	return status_json(rq, row, reply, e);
}

/* ---- changes: written, told, and answered when it is in force or known not to be ---- */

struct setting_up {
	struct job job;
	struct request *rq;
	bool lock;
	struct network_row row;
};

static void on_told(void *data)
{
	cleanup(free_ptr) struct setting_up *u = data;
	cleanup(buf_done) struct buf body = buf_make(REPLY_MAX);
	struct err e;

	if (status_json(u->rq, &u->row, &body, &e) < 0)
		return request_fail(u->rq, &e);
	request_reply(u->rq, 200, &body);
}

static void on_written(struct job *job)
{
	struct setting_up *u = container_of(job, struct setting_up, job);
	struct request *rq = u->rq;

	if (job->failed) {
		request_fail(rq, &job->e);
		free(u);
		return;
	}
	egress_tell(rq->reactor->berthd->egress, rq->param, rq->reactor, on_told, u);
}

static int write_row(struct job *job, struct store *s, struct err *e)
{
	struct setting_up *u = container_of(job, struct setting_up, job);
	struct request *rq = u->rq;
	struct sandbox sb = { 0 };
	struct network_put put = { .sandbox = rq->param,
				   .policy = buf_str(&rq->body),
				   .unlocked = rq->key.role != ROLE_ADMIN };

	if (find(rq, s, &sb, e) < 0)
		return -1;
	if (sb.state == SANDBOX_GONE || sb.state == SANDBOX_DELETING)
		return err_set(e, ERR_NOT_FOUND, "sandbox %s is %s", sb.id,
			       sandbox_state_name(sb.state));
	put.owner = sb.owner;
	if ((u->lock ? store_network_lock(s, sb.id, sb.owner, &u->row, e)
		     : store_network_put(s, &put, &u->row, e)) < 0)
		return -1;
	crash_point("egress.policy-written");
	return 0;
}

static void change(struct request *rq, bool lock)
{
	struct setting_up *u = xcalloc(1, sizeof(*u));

	u->rq = rq;
	u->lock = lock;
	job_submit(rq->reactor, request_owner(rq), &u->job, write_row, on_written);
}

static void begin_put(struct request *rq)
{
	change(rq, false);
}

static void begin_lock(struct request *rq)
{
	change(rq, true);
}

void network_put(struct request *rq)
{
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0 ||
	    network_check(&rq->key, buf_str(&rq->body), rq->body.len, &e) < 0)
		return request_fail(rq, &e);
	idempotency_claim(rq, begin_put, NULL);
}

void network_lock(struct request *rq)
{
	struct err e;

	if (sandbox_id_check(rq->param, &e) < 0)
		return request_fail(rq, &e);
	idempotency_claim(rq, begin_lock, NULL);
}

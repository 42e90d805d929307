#include "berthd/api/v1/hosts.h"

#include <string.h>

#include "berthd/control/capacity.h"
#include "berthd/runtime/berthd.h"
#include "http/target.h"
#include "lib/crash.h"
#include "lib/json.h"
#include "lib/log.h"
#include "lib/time.h"
#include "store/sandbox.h"

#define POWERED_OFF "powered-off"

struct listing {
	struct berthd *berthd;
	struct buf *out;
	unsigned divisor;
};

static void time_member(struct buf *out, const char *name, uint64_t ms)
{
	char text[TIME_TEXT_SIZE] = "";

	if (ms)
		time_text(ms, text);
	json_str(out, name, text);
}

/* A host without a lease writes no figures into its row; its own berthd knows them. */
static struct host_capacity capacity_of(const struct listing *l, const struct host *h)
{
	struct host_capacity c = h->capacity;

	if (strcmp(h->id, l->berthd->settings.host) == 0)
		capacity_figures(l->berthd, &c);
	return c;
}

static void capacity_json(struct buf *out, const struct host_capacity *c)
{
	json_key(out, "capacity");
	json_open(out, '{');
	json_int(out, "cpus", (int64_t)c->cpus);
	json_int(out, "memory_mb", (int64_t)c->memory_mb);
	json_int(out, "memory_free_mb", (int64_t)c->memory_free_mb);
	json_int(out, "disk_mb", (int64_t)c->disk_mb);
	json_int(out, "disk_free_mb", (int64_t)c->disk_free_mb);
	json_str(out, "runtimes", c->runtimes);
	json_int(out, "open_files", (int64_t)c->open_files);
	buf_adds(out, "}");
}

static void promised_json(struct buf *out, const struct host *h)
{
	json_key(out, "promised");
	json_open(out, '{');
	json_int(out, "memory_mb", (int64_t)h->promised_memory_mb);
	json_int(out, "disk_mb", (int64_t)h->promised_disk_mb);
	json_int(out, "cpu_milli", (int64_t)h->promised_cpu_milli);
	json_int(out, "pids", (int64_t)h->promised_pids);
	buf_adds(out, "}");
}

static void host_json(const struct host *h, void *arg)
{
	struct listing *l = arg;
	struct host_capacity c = capacity_of(l, h);

	json_open(l->out, '{');
	json_str(l->out, "id", h->id);
	json_str(l->out, "state", host_lease_state_name(host_state(h, l->divisor)));
	json_bool(l->out, "draining", h->draining);
	json_int(l->out, "epoch", (int64_t)h->epoch);
	json_str(l->out, "address", h->address);
	time_member(l->out, "lease_until", h->lease_until_ms);
	time_member(l->out, "seen_at", h->seen_ms);
	json_int(l->out, "sandboxes", (int64_t)h->sandboxes);
	capacity_json(l->out, &c);
	promised_json(l->out, h);
	json_str(l->out, "version", h->version);
	buf_adds(l->out, "}");
}

static struct listing listing_of(const struct request *rq, struct buf *out)
{
	return (struct listing){
		.berthd = rq->reactor->berthd,
		.out = out,
		.divisor = (unsigned)rq->reactor->berthd->settings.timer_divisor,
	};
}

int hosts_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = listing_of(rq, reply);

	json_open(reply, '{');
	json_key(reply, "hosts");
	json_open(reply, '[');
	if (store_host_list(s, host_json, &l, e) < 0)
		return -1;
	buf_adds(reply, "]");
	json_str(reply, "next", "");
	buf_adds(reply, "}");
	return 0;
}

int hosts_get(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct listing l = listing_of(rq, reply);
	struct host h;

	if (store_host_get(s, rq->param, &h, e) < 0)
		return -1;
	host_json(&h, &l);
	return 0;
}

static int set_draining(struct request *rq, struct store *s, bool draining, struct buf *reply,
			struct err *e)
{
	struct listing l = listing_of(rq, reply);
	struct host h;

	if (store_host_drain(s, rq->param, draining, &h, e) < 0)
		return -1;
	crash_point("hosts.drain-written");
	log_event(LOG_INFO, draining ? "host takes nothing new" : "host takes new ones again",
		  "host", h.id, "request_id", rq->id, NULL);
	host_json(&h, &l);
	return 0;
}

int hosts_drain(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	return set_draining(rq, s, true, reply, e);
}

int hosts_undrain(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	return set_draining(rq, s, false, reply, e);
}

/* berthd did not look, and the receipt says so: whose word it is, and since when. */
static void write_receipt(const struct request *rq, struct buf *out)
{
	static const char *const parts[] = { "process", "cgroup", "disk", "runtime" };
	char when[TIME_TEXT_SIZE];

	time_text(time_wall_ms(), when);
	json_open(out, '{');
	json_str(out, "removed_at", when);
	json_str(out, "removed_by", rq->key.name);
	json_str(out, "statement", "the host is " POWERED_OFF);
	json_str(out, "host", rq->param);
	for (size_t i = 0; i < array_len(parts); i++)
		json_str(out, parts[i], "unknown");
	buf_adds(out, "}");
}

/*
 * Records are erased for sandboxes whose end was not seen. That takes more than a wish: a
 * statement, by which the host runs nothing, and which the receipts keep.
 */
static int check_statement(const struct request *rq, struct store *s, struct err *e)
{
	char said[sizeof(POWERED_OFF)];
	struct host h;
	bool found;

	if (http_query(rq->query, "confirm", said, sizeof(said), &found, e) < 0 ||
	    store_host_get(s, rq->param, &h, e) < 0)
		return -1;
	if (strcmp(said, POWERED_OFF) == 0 || !h.lost_ms || h.removed_ms)
		return 0;
	err_set(e, ERR_CONFLICT, "host %s is lost, and what it ran was not seen to end", h.id);
	return err_fix(e, "Power it off, and say so: `berth host rm --powered-off %s`, or "
			  "?confirm=" POWERED_OFF ". The receipts will have your word.",
		       h.id);
}

int hosts_remove(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	cleanup(buf_done) struct buf receipt = buf_make(STORE_RECEIPT_MAX);
	struct listing l = listing_of(rq, reply);
	struct host_removal removal = { .id = rq->param, .by = rq->key.name, .divisor = l.divisor };
	struct host h;

	if (check_statement(rq, s, e) < 0)
		return -1;
	write_receipt(rq, &receipt);
	removal.receipt = buf_str(&receipt);
	if (store_host_remove(s, &removal, &h, e) < 0)
		return -1;
	crash_point("hosts.removed");
	log_event(LOG_WARN, "host was removed from the cell", "host", h.id, "key", rq->key.name,
		  "request_id", rq->id, NULL);
	host_json(&h, &l);
	return 0;
}

#include "berthd/api/v1/security.h"

#include "berthd/netpolicy/refusals.h"
#include "lib/json.h"
#include "store/network.h"
#include "store/sandbox.h"

static void list_row(const struct security_event *ev, void *arg)
{
	refusal_json(arg, ev);
}

int security_list(struct request *rq, struct store *s, struct buf *reply, struct err *e)
{
	struct sandbox sb;
	uint64_t after;

	if (request_after(rq, &after, e) < 0 || sandbox_id_check(rq->param, e) < 0 ||
	    store_sandbox_get(s, request_owner(rq), rq->param, &sb, e) < 0)
		return -1; /* also asks whose it is */
	json_open(reply, '{');
	json_key(reply, "events");
	json_open(reply, '[');
	if (store_security_list(s, sb.id, after, list_row, reply, e) < 0)
		return -1;
	buf_adds(reply, "]}");
	return 0;
}

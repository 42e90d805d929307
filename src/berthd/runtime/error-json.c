#include "berthd/runtime/error-json.h"

#include "lib/json.h"

/* Only the database speaks through us, and what it says is for the log. */
static const char *inner_text(const struct err *e)
{
	return e->code == ERR_BUSY ? "the database cannot be reached, or is busy"
				   : "the database did not do this; berthd's log says more";
}

void error_json(const char *request_id, const struct err *e, struct buf *out)
{
	json_open(out, '{');
	json_str(out, "code", err_name(e->code));
	if (e->reason)
		json_str(out, "reason", e->reason);
	json_str(out, "message", e->inner ? inner_text(e) : e->msg);
	json_str(out, "remediation", err_remediation(e));
	json_str(out, "request_id", request_id);
	buf_adds(out, "}");
}

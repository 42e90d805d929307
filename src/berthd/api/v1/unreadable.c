#include "berthd/api/v1/unreadable.h"

#include "lib/json.h"
#include "lib/log.h"

void unreadable_json(struct buf *out, const char *list, int count, const struct err *first)
{
	json_int(out, "unreadable", count);
	if (count > 0)
		log_event(LOG_WARN, "a list leaves out rows that cannot be read", "list", list,
			  "why", first->msg, NULL);
}

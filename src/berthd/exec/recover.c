#include "berthd/exec/recover.h"

#include <stdio.h>

#include "berthd/exec/exec.h"
#include "lib/log.h"

struct resume {
	struct berthd *b;
	size_t count;
};

static int resume_one(void *data, const char *sandbox, const char *id)
{
	struct resume *r = data;
	struct journal *j;
	struct err e;

	if (journal_find(r->b->journals, sandbox, id, &j, &e) < 0) {
		if (journal_remove_unwritten(r->b->journals, sandbox, id)) {
			log_event(LOG_WARN, "exec journal was lost in a power cut: removed",
				  "sandbox", sandbox, "exec", id, NULL);
			return 0;
		}
		log_event(LOG_WARN, "exec journal cannot be read: left alone", "sandbox", sandbox,
			  "exec", id, "why", e.msg, NULL);
		return 0;
	}
	if (j->slot.state == JOURNAL_RUNNING && journal_recover(j, &e) < 0)
		log_event(LOG_WARN, "exec journal cannot be opened: left alone", "sandbox", sandbox,
			  "exec", id, "why", e.msg, NULL);
	else if (j->slot.state != JOURNAL_SETTLED)
		exec_go_on(&r->b->reactors[r->count++ % r->b->reactor_count], j);
	journal_unref(j);
	return 0;
}

void execs_recover(struct berthd *b)
{
	struct resume r = { .b = b };
	char count[24];

	journals_each(b->journals, NULL, resume_one, &r);
	if (r.count == 0)
		return;
	snprintf(count, sizeof(count), "%zu", r.count);
	log_event(LOG_INFO, "running execs are reached again", "execs", count, NULL);
}

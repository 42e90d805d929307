#include "cli/finding.h"

#include "test.h"

TEST(what_got_through_is_told_last)
{
	cleanup(findings_done) struct findings f = { 0 };
	cleanup(buf_done) struct buf out = buf_make(4096);

	finding_set(findings_add(&f, "a", "x", "y"), VERDICT_THROUGH, "read it");
	finding_set(findings_add(&f, "b", "x", "y"), VERDICT_HELD, "refused");
	findings_add(&f, "c", "x", "y");
	findings_print(&f, &out);
	CHECK_STR(buf_str(&out), "         PROBE  STANDS FOR  TRIES  SEEN\n"
				 "held     b      x           y      refused\n"
				 "THROUGH  a      x           y      read it\n"
				 "THROUGH  c      x           y      no answer\n");
	CHECK(findings_through(&f) == 2);
}

/* What `berth doctor` says of this machine. */
#include <string.h>

#include "cli/check.h"
#include "test.h"

TEST(copies_of_what_was_sent_are_refused_by_the_host_or_per_sandbox)
{
	static const struct {
		uint64_t allowed;
		bool per_namespace;
		enum check_state told;
	} cases[] = {
		{ 0, false, CHECK_OK },
		{ 0, true, CHECK_OK },
		{ 1, true, CHECK_OK },
		{ 1, false, CHECK_WARN },
	};

	for (size_t i = 0; i < array_len(cases); i++) {
		struct check k = { 0 };

		check_copies_of(cases[i].allowed, cases[i].per_namespace, &k);
		CHECK_INT(k.state, cases[i].told);
		CHECK_INT(k.fix[0] != '\0', cases[i].told != CHECK_OK);
	}
}
